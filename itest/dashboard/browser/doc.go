// Package browser gives tests pages of a real Chromium: one browser for all tests of a binary, a profile of its own
// for each page. A page collects what a user would see in the browser's console, and fails its test at the end if that
// holds an error or a breach of the content security policy.
//
// `make setup` installs Chromium and axe-core, which Page.Axe runs. CHROMIUM names another program.
package browser
