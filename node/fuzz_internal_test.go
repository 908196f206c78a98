package node

import (
	"bytes"
	"testing"
)

// FuzzScanLog reads any bytes as the log of a server that ran on copies: never a panic, and bounded lines, few of them.
func FuzzScanLog(f *testing.F) {
	for _, s := range []string{"", `{"level":"fatal","ts":"x","msg":"failed to open database","error":"EOF"}` + "\n",
		"2026-11-21 04:00:00.000000 C | etcdmain: listen tcp 127.0.0.1:2379: bind: address already in use\n",
		"panic: assertion failed: Page expected to be: 7\n\ngoroutine 1 [running]:\n", "flag provided but not defined: -x",
		"{\"level\":\"warn\",\"msg\":\"a\\u0000\\u001b[31m\",\"error\":{}}\n\xff\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		fatal, last := scanLog(bytes.NewReader(b))
		if len(fatal) > keptLines || len(last) > lastLines {
			t.Errorf("%d and %d lines", len(fatal), len(last))
		}
		for _, l := range append(fatal, last...) {
			if l == "" || len(l) > 3*maxLine+2 { // JSON makes three bytes of one that is not UTF-8
				t.Errorf("a line of %d bytes", len(l))
			}
		}
	})
}
