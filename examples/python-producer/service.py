#!/usr/bin/env python
"""A Python service that delays calls of Go functions and of its own functions."""

import tasks

# Workers of either language leave the tasks of the other one alone; two queues show who does what.
go_jobs = tasks.app.queue('go-jobs')


def upload(photo: str) -> None:
    """What a web handler would do after it has stored the photo."""
    # func Resize(ctx context.Context, photo string, size Size) error: a dict, or a dataclass, becomes the struct.
    go_jobs.options(timeout=60).delay('images.Resize', photo, {'Width': 320, 'Height': 200})
    # func Tag(photo string, tags ...string)
    go_jobs.delay('images.Tag', photo, 'holiday', 'sea')
    # func Forget(photo string), and func Tidy(), which many uploads in a row need once.
    go_jobs.delay('images.Forget', 'old-' + photo)
    go_jobs.options(unique=60, on_conflict='skip').delay('images.Tidy')

    # A function of this service, with three retries. mypy and pyright check the arguments.
    mail = tasks.send_mail.options(retry=3, keep_result=60).delay('ann@example.com', 'Your photo', body=photo)
    mail.result(timeout=60)


if __name__ == '__main__':
    upload('beach.jpg')
    print('python: delayed 4 Go calls and 1 Python call, which is done', flush=True)
