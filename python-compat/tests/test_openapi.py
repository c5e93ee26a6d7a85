"""The description of the dashboard's API, as a validator that is not ours reads it."""

import json
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from openapi_spec_validator.validation.exceptions import OpenAPIValidationError

PATH = Path(__file__).parents[2] / 'web' / 'internal' / 'api' / 'openapi.json'


def described() -> dict[str, Any]:
    document = json.loads(PATH.read_text())
    assert isinstance(document, dict)
    return document


def test_openapi_is_valid() -> None:
    document = described()
    assert document['openapi'].startswith('3.1.')
    OpenAPIV31SpecValidator(document).validate()


def test_validator_finds_mistakes() -> None:
    document = described()
    del document['info']['version']
    with pytest.raises(OpenAPIValidationError, match='version'):
        OpenAPIV31SpecValidator(document).validate()
