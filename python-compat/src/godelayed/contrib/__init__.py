"""Middleware for other packages: Sentry, OpenTelemetry and structlog. Each module needs the extra of its name."""
