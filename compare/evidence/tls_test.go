package evidence_test

import (
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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
	strict := httptest.NewUnstartedServer(http.NotFoundHandler())
	strict.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13}
	strict.StartTLS()
	defer strict.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: strict.Certificate().Raw}
	if err := os.WriteFile(ca, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	for where, want := range map[string]string{s.URL: "certificate signed by unknown authority",
		strict.URL: "certificate required", strings.Replace(s.URL, "https:", "http:", 1): "is it https://127.0.0.1",
		"http://127.0.0.1:1": "connection refused"} {
		access := evidence.Access{DialTimeout: 2 * time.Second}
		if where == strict.URL {
			access.CACert = ca
		}
		_, err := evidence.Open(t.Context(), []evidence.Spec{{Where: where}}, evidence.Options{Access: access})
		if err == nil {
			t.Fatalf("%s was read", where)
		}
		at, late := strings.Index(err.Error(), want), strings.Index(err.Error(), "deadline")
		if at < 0 || late >= 0 && late < at {
			t.Errorf("%v does not begin with %q", err, want)
		}
	}
}
