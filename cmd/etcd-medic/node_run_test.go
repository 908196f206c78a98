package main_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/cli"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// text is what a command has written so far.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *text) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(b)
}

func (w *text) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// TestNodeRunJSON: a script finds in the document all it needs to reach the members, and everything is gone at the end.
func TestNodeRunJSON(t *testing.T) {
	dir, scratch := evidencetest.Incident(t, "m-healthy-3.6"), t.TempDir()
	evidencetest.Unchanged(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stdout, stderr text
	code := make(chan int, 1)
	go func() {
		code <- cli.Main(ctx, []string{"node", "run", "--scratch", scratch, "-w", "json", dir},
			&cli.Streams{Out: &stdout, Err: &stderr, Getenv: func(string) string { return "" }})
	}()
	var doc struct {
		Server, Isolation, CACert, Cert, Key, Etcdctl string
		Endpoints                                     []string
		Members                                       []struct{ Name, Endpoint, Log, DataDir, Ended string }
		Env                                           map[string]string
	}
	for deadline := time.Now().Add(time.Minute); json.Unmarshal([]byte(stdout.String()),
		&doc) != nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) || len(code) > 0 {
			t.Fatalf("no document:\n%s%s", stdout.String(), stderr.String())
		}
	}
	if len(doc.Members) != 3 || len(doc.Endpoints) != 3 || doc.Isolation == "" ||
		!strings.HasPrefix(doc.Server, "etcd 3.6") {
		t.Errorf("%+v", doc)
	}
	for _, m := range doc.Members {
		if _, err := os.Stat(m.Log); err != nil || !strings.HasPrefix(m.DataDir, scratch) || m.Ended != "" {
			t.Errorf("%+v, %v", m, err)
		}
	}
	// The line is a shell's to read: it comes out as the variables say.
	out, err := exec.Command("sh", "-c", "etcdctl() { printf '%s\n' \"$@\"; }; "+doc.Etcdctl).Output()
	if want := "--endpoints=" + doc.Env["ETCDCTL_ENDPOINTS"] + "\n--cacert=" + doc.CACert + "\n--cert=" + doc.Cert +
		"\n--key=" + doc.Key + "\n"; err != nil || string(out) != want {
		t.Errorf("%v: %s gives %s, want %s", err, doc.Etcdctl, out, want)
	}
	readThrough(t, doc.Endpoints, doc.CACert, doc.Cert, doc.Key)
	cancel()
	if c := <-code; c != cli.ExitDone {
		t.Errorf("exit code %d\n%s", c, stderr.String())
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("%v is left behind, %v", left, err)
	}
}

// readThrough reads through the endpoints with the client's files.
func readThrough(t *testing.T, endpoints []string, ca, cert, key string) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	c, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithNoProxy()},
		TLS: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
			ServerName: "127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if r, err := c.Get(ctx, "", clientv3.WithPrefix(), clientv3.WithCountOnly()); err != nil || r.Count == 0 {
		t.Errorf("%v, %v", r, err)
	}
}
