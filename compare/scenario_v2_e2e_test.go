//go:build e2e

package compare_test

import (
	"net/http"
	"net/url"
	"strings"
)

// v2 sends requests of the v2 API through NODE: METHOD PATH, a put with the value x. A method of two words, such as
// PUT?prevExist=true, carries a query.
func (s *scenario) v2(args []string) {
	ctx, cancel := s.context()
	defer cancel()
	method, query, _ := strings.Cut(args[1], "?")
	body := strings.NewReader(url.Values{"value": {"x"}}.Encode())
	req, err := http.NewRequestWithContext(ctx, method, s.c.Endpoint(s.node(args[0]))+"/v2/keys"+args[2]+"?"+query,
		body)
	s.must(err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r, err := http.DefaultClient.Do(req)
	s.must(err)
	defer func() { _ = r.Body.Close() }()
	if r.StatusCode >= http.StatusMultipleChoices {
		s.Fatalf("%s: %s", s.line, r.Status)
	}
}
