"""Python functions that are run later, by python_worker.py."""


def send_mail(to, subject, body=''):
    print('python: mail to %s: %s' % (to, subject), flush=True)
