package node

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func leaf(t *testing.T, file string) *x509.Certificate {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(b)
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestAuthority: peer certificates carry the original names and addresses, client certificates none, which etcd would
// hold against where a client comes from.
func TestAuthority(t *testing.T) {
	dir := t.TempDir()
	a, err := newAuthority(dir + "/tls")
	if err != nil {
		t.Fatal(err)
	}
	p, err := a.issue("peer", "n1", []string{"127.0.0.1", "etcd-1.example.invalid", "10.0.0.1", "fd00::1"})
	if err != nil {
		t.Fatal(err)
	}
	peer := leaf(t, p.cert)
	for _, host := range []string{"127.0.0.1", "etcd-1.example.invalid", "10.0.0.1", "fd00::1"} {
		_, err := peer.Verify(x509.VerifyOptions{Roots: a.pool, DNSName: host,
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
		if err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	if err := peer.VerifyHostname("etcd-2.example.invalid"); err == nil {
		t.Error("a name that was not asked for")
	}
	c, err := a.issue("client", "root", nil)
	if err != nil {
		t.Fatal(err)
	}
	client := leaf(t, c.cert)
	_, err = client.Verify(x509.VerifyOptions{Roots: a.pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil || client.Subject.CommonName != "root" || len(client.DNSNames)+len(client.IPAddresses) != 0 {
		t.Errorf("%v %v: %v", client.Subject, client.DNSNames, err)
	}
	if d := time.Until(client.NotAfter); d > lifetime || d < lifetime-time.Hour ||
		time.Since(client.NotBefore) < 24*time.Hour {
		t.Errorf("valid from %v to %v", client.NotBefore, client.NotAfter)
	}
	if _, err := tls.LoadX509KeyPair(c.cert, c.key); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(a.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if st, err := e.Info(); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", e.Name(), st.Mode(), err)
		}
		if strings.Contains(e.Name(), "ca-key") {
			t.Error("the CA's key is on disk")
		}
	}
	other, err := newAuthority(dir + "/other")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Verify(x509.VerifyOptions{Roots: other.pool,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err == nil {
		t.Error("the CA of another sandbox")
	}
}

// TestLogLines: lines of each line's logger that tell of the end of a process.
func TestLogLines(t *testing.T) {
	for line, want := range map[string]string{
		`{"level":"fatal","ts":"x","msg":"failed to open database","error":"EOF"}`:                                     "!failed to open database: EOF",
		`{"level":"panic","ts":"x","msg":"tocommit(208) is out of range [lastIndex(5)]. Was the raft log corrupted?"}`: "!tocommit(208) is out of range [lastIndex(5)]. Was the raft log corrupted?",
		`{"level":"info","msg":"ready to serve client requests"}`:                                                      "ready to serve client requests",
		`{"level":"warn","msg":"failed","error":"x"}`:                                                                  "failed: x",
		`{"level":"fatal"`: `{"level":"fatal"`,
		`2026-11-21 04:00:00.000000 C | etcdmain: listen tcp 127.0.0.1:2379: bind: address already in use`: "!etcdmain: listen tcp 127.0.0.1:2379: bind: address already in use",
		`2026-11-21 04:00:00.000000 I | etcdmain: etcd Version: 3.3.18`:                                    "2026-11-21 04:00:00.000000 I | etcdmain: etcd Version: 3.3.18",
		`panic: assertion failed: Page expected to be: 7`:                                                  "!panic: assertion failed: Page expected to be: 7",
		`unexpected fault address 0x7f`:                                                                    "!unexpected fault address 0x7f",
		`fatal error: fault`:                                                                               "!fatal error: fault",
		`flag provided but not defined: -x`:                                                                "!flag provided but not defined: -x",
		``:                                                                                                 "",
	} {
		text, grave := logLine(line)
		if grave {
			text = "!" + text
		}
		if text != want {
			t.Errorf("%s\n  is %q, want %q", line, text, want)
		}
	}
	long := "panic: " + strings.Repeat("x", 1<<20)
	fatal, last := scanLog(strings.NewReader("one\ntwo\n\nthree\nfour\n" + long))
	if len(fatal) != 1 || len(fatal[0]) != maxLine || len(last) != lastLines ||
		!slices.Equal(last[:2], []string{"three", "four"}) {
		t.Errorf("%d %v", len(fatal), last[:2])
	}
	fatal, _ = scanLog(strings.NewReader(strings.Repeat("panic: again\n", 1000)))
	if len(fatal) != keptLines {
		t.Error(len(fatal))
	}
}

// TestLoopbackAsGoSeesIt: exactly the hosts that net/http dials directly although a proxy is set.
func TestLoopbackAsGoSeesIt(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST": true, "127.0.0.1": true, "127.8.9.10": true, "::1": true, "10.0.0.1": false,
		"localhost.example": false,
		"etcd-1":            false, "128.0.0.1": false, "0.0.0.0": false, "::": false,
	} {
		if isLoopback(host) != want {
			t.Errorf("%s: %v", host, isLoopback(host))
		}
	}
	p, err := parsePeer("https://localhost:2380")
	if err != nil || !slices.Equal(p.bindAddresses(), []string{"127.0.0.1:2380", "[::1]:2380"}) {
		t.Errorf("%+v %v", p.bindAddresses(), err)
	}
}

// TestSocketDir: the sockets lie in the scratch folder if their paths stay short enough for the kernel, else somewhere
// short.
func TestSocketDir(t *testing.T) {
	short, err := os.MkdirTemp("/tmp", "x")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(short)
	for scratch, inside := range map[string]bool{short: true, short + "/" + strings.Repeat("long", 30): false} {
		dir, err := socketDir(scratch)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(dir, scratch) != inside || len(dir) > maxSocketPath {
			t.Errorf("%s for %s", dir, scratch)
		}
		if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v %v", dir, st, err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}
}
