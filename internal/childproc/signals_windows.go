package childproc

import "syscall"

// Windows knows neither, and Signal returns an error for them. With them the tests of packages that also run on Windows
// compile there.
const sigStop, sigCont = syscall.Signal(19), syscall.Signal(18)
