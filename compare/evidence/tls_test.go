package evidence_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// TestConnectionErrorsSayWhy: that the time is over is what a client says of every connection that fails; the reason
// comes first.
func TestConnectionErrorsSayWhy(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	for where, want := range map[string]string{s.URL: "certificate signed by unknown authority",
		"http://127.0.0.1:1": "connection refused"} {
		_, err := evidence.Open(t.Context(), []evidence.Spec{{Where: where}},
			evidence.Options{Access: evidence.Access{DialTimeout: 2 * time.Second}})
		if err == nil {
			t.Fatalf("%s was read", where)
		}
		at, late := strings.Index(err.Error(), want), strings.Index(err.Error(), "deadline")
		if at < 0 || late >= 0 && late < at {
			t.Errorf("%v does not begin with %q", err, want)
		}
	}
}
