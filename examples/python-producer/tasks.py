"""Python functions that are run later, by a worker: delayed-worker tasks --queue py-jobs."""

import godelayed

app = godelayed.Delayed(queue='py-jobs')  # the server is that of REDIS_URL


@app.task
def send_mail(to: str, subject: str, body: str = '') -> None:
    print(f'python: mail to {to}: {subject}', flush=True)
