package nearest

import "testing"

func TestDistance(t *testing.T) {
	t.Parallel()
	for pair, want := range map[[2]string]int{
		{"", ""}: 0, {"", "abc"}: 3, {"abc", ""}: 3, {"abc", "abc"}: 0, {"abc", "abd"}: 1, {"abc", "xabc"}: 1,
		{"kitten", "sitting"}: 3, {"ab", "ba"}: 2,
	} {
		if got := Distance(pair[0], pair[1]); got != want {
			t.Errorf("from %q to %q are %d steps, expected %d", pair[0], pair[1], got, want)
		}
	}
}

func TestPath(t *testing.T) {
	t.Parallel()
	paths := []string{
		"example.com/app/mail.Welcome", "example.com/app/mail.Digest", "example.com/shop/mail.Welcome",
		"example.com/app/mail.(*Mailer).Send", "post.tasks:send", "sum.int",
	}
	for given, want := range map[string]string{
		"example.com/app/mail.Welcom":        "example.com/app/mail.Welcome",
		"example.com/shop/mail.Wellcome":     "example.com/shop/mail.Welcome",
		"example.com/app/mail.welcome":       "example.com/app/mail.Welcome",
		"example.com/application/mail.Diges": "example.com/app/mail.Digest",
		"mail.Digest":                        "example.com/app/mail.Digest",
		"Digest":                             "example.com/app/mail.Digest",
		"sned":                               "",
		"mail.Mailer.Send":                   "example.com/app/mail.(*Mailer).Send",
		"post.task:send":                     "post.tasks:send",
		"sum.int64":                          "sum.int",
		"example.com/app/search.Index":       "",
		"":                                   "",
	} {
		if got := Path(given, paths); got != want {
			t.Errorf("nearest to %q is %q, expected %q", given, got, want)
		}
	}
}
