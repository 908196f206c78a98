package extract

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestChangeScriptInAShell runs a script with a stand-in for etcdctl that records its arguments and its input: every
// byte of keys and values must come through.
func TestChangeScriptInAShell(t *testing.T) {
	dir := t.TempDir()
	record := filepath.Join(dir, "record")
	stub := "#!/bin/sh\nif [ \"$1\" = lease ]; then echo lease 7b granted; exit; fi\n" +
		"for a in \"$@\"; do printf '%s\\000' \"$a\" >>" + record + "; done\n" +
		"[ \"$1\" = put ] && cat >>" + record + "\nprintf '\\001\\n' >>" + record + "\n"
	ctl := filepath.Join(dir, "etcdctl")
	if err := os.WriteFile(ctl, []byte(stub), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	var script bytes.Buffer
	s, err := NewChangeScript(&script, "node3\nrm -rf x", "what\nelse", 7, map[int64]int64{0x7b: 30})
	if err != nil {
		t.Fatal(err)
	}
	all := make([]byte, 0, 255)
	for c := 1; c < 256; c++ {
		all = append(all, byte(c))
	}
	keys := [][]byte{[]byte("/plain"), []byte("-dash"), []byte("it's"), []byte("$(id) `id` \"x\" \\ %s"),
		[]byte("ends in newlines\n\n"), all}
	var want bytes.Buffer
	for _, k := range keys {
		if err := s.Delete(k); err != nil {
			t.Fatal(err)
		}
		want.WriteString("del\x00--\x00" + string(k) + "\x00\x01\n")
	}
	for i, v := range [][]byte{nil, []byte("-n"), append([]byte{0}, all...), []byte("v\n")} {
		lease, flag := int64(0), ""
		if i == 3 {
			lease, flag = 0x7b, "--lease=7b\x00"
		}
		if err := s.Put(keys[i], v, lease); err != nil {
			t.Fatal(err)
		}
		empty := ""
		if len(v) == 0 { // etcdctl takes an empty stdin for a missing value, so that goes as an argument
			empty = "\x00"
		}
		want.WriteString("put\x00" + flag + "--\x00" + string(keys[i]) + "\x00" + empty + string(v) + "\x01\n")
	}
	if err := errors.Join(s.Put([]byte("a\x00b"), nil, 0), s.Delete([]byte("\x00"))); err != nil ||
		len(s.Skipped) != 2 || string(s.Skipped[0]) != "a\x00b" {
		t.Errorf("a key with a zero byte: %v, %q", err, s.Skipped)
	}
	if s.Puts != 4 || s.Deletes != len(keys) {
		t.Errorf("%d puts, %d deletes", s.Puts, s.Deletes)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh")
	cmd.Stdin = &script
	cmd.Env = append(os.Environ(), "ETCDCTL="+ctl)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	have, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want.String(), string(have)); d != "" {
		t.Error(d)
	}
}
