package delayed

import "github.com/godelayed/delayed/internal/redisstore"

// claimsPage reads claims of a processing hash: all of them if there are at most n, else some n.
func claimsPage(s *redisstore.Store, hash string, n int) (page []redisstore.Claimed, total int, err error) {
	tokens, total, err := s.ClaimTokens(bg, hash, n)
	for len(tokens) > 0 && err == nil {
		var some []redisstore.Claimed
		var read int
		some, read, err = s.Claims(bg, hash, tokens)
		page, tokens = append(page, some...), tokens[read:]
	}
	return page, total, err
}

// judged is a verdict on a claim: the message goes on with "+" behind it.
func judged(token, message, action, id string) redisstore.Verdict {
	return redisstore.Verdict{
		Claimed: redisstore.Claimed{Token: token, Message: []byte(message)}, Action: action,
		Renewed: []byte(message + "+"), ID: id, Info: []byte("i " + id), Digest: "sha " + message,
	}
}
