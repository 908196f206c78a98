package serverlog_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/serverlog"
)

// FuzzRead reads any bytes as the log of a server, plain, as JSON and as container runtimes wrap it: never a panic, and
// never more matches than lines.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		"", "\n", `{"level":"panic","ts":"2021-10-21T01:41:34.000Z","caller":"x.go:1","msg":"failed to recover v3 backend from snapshot","error":"failed to find database snapshot file"}` + "\n",
		"2021-10-21 01:41:34.000000 C | etcdserver: read wal error (wal: crc mismatch) and cannot be repaired\n",
		"2021-10-21T01:41:34.000000000Z stderr F {\"level\":\"warn\",\"msg\":\"apply request took too long\"}\n",
		`{"log":"{\"level\":\"info\",\"msg\":\"x\"}\n","stream":"stderr","time":"2021-10-21T01:41:34.0Z"}`,
		"\xff\x00\x1b[31m",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		j, err := serverlog.Read(context.Background(), bytes.NewReader(b))
		if err == nil && j == nil {
			t.Error("neither a log nor an error")
		}
		if n := len(serverlog.Scan(string(b))); n > len(serverlog.All()) {
			t.Errorf("%d kinds of messages, %d are known", n, len(serverlog.All()))
		}
	})
}
