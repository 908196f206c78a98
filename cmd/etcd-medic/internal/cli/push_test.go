package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestPushMetrics(t *testing.T) {
	var got, method string
	code := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, method = string(b), r.Method
		w.WriteHeader(code)
		_, _ = io.WriteString(w, "why")
	}))
	defer s.Close()
	if err := pushMetrics(t.Context(), s.URL+"/metrics/job/x", []byte("a 1\n")); err != nil || got != "a 1\n" ||
		method != http.MethodPut {
		t.Errorf("%v; %s %q", err, method, got)
	}
	code = http.StatusBadRequest
	if err := pushMetrics(t.Context(), s.URL, nil); err == nil || !strings.Contains(err.Error(), "why") {
		t.Errorf("a refusal: %v", err)
	}
	for address, want := range map[string]bool{"": true, "http://h:9091/metrics/job/x": true, "https://h": true,
		"h:9091": false, "file:///x": false} {
		if err := checkPush(address); (err == nil) != want {
			t.Errorf("%q: %v", address, err)
		}
	}
}
