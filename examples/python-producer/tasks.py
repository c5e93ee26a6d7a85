"""Python functions that are run later, by a worker: delayed-worker tasks --queue py-jobs."""

import godelayed


@godelayed.task
def send_mail(to, subject, body=''):
    print(f'python: mail to {to}: {subject}', flush=True)
