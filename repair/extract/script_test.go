package extract_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/repair/extract"
)

// asEtcdctl makes the test program behave as etcdctl: it files what it is called with in the file of that name. What
// the real one makes of the scripts is tested end to end.
const asEtcdctl = "ETCD_MEDIC_TEST_ETCDCTL"

type call struct{ Key, Value, Lease []byte }

func fakeEtcdctl(args []string) int {
	var calls []call
	switch args[0] {
	case "lease":
		fmt.Printf("lease 1234%s granted with TTL(%ss)\n", args[2], args[2])
		return 0
	case "put":
		c := parsePut(args[1:])
		if c.Value == nil {
			value, err := io.ReadAll(os.Stdin)
			if err != nil || len(value) == 0 { // as the real one refuses it
				return 1
			}
			c.Value = value
		}
		calls = append(calls, c)
	case "txn":
		calls = readTxn(bufio.NewReader(os.Stdin))
	}
	f, err := os.OpenFile(os.Getenv(asEtcdctl), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 1
	}
	defer f.Close()
	for _, c := range calls {
		if json.NewEncoder(f).Encode(c) != nil {
			return 1
		}
	}
	return 0
}

func parsePut(args []string) (c call) {
	fs := flag.NewFlagSet("put", flag.ContinueOnError)
	l := fs.String("lease", "", "")
	if fs.Parse(args) != nil {
		return c
	}
	c.Key, c.Lease = []byte(fs.Arg(0)), []byte(*l)
	if fs.NArg() > 1 {
		c.Value = []byte(fs.Arg(1))
	}
	return c
}

// word is how etcdctl splits a line of a transaction (etcdctl/ctlv3/command/util.go, Argify).
var word = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'[^']*'|[^'"\s]\S*[^'"\s]?`)

func readTxn(in *bufio.Reader) (calls []call) {
	for part := 0; part < 3; {
		l, err := in.ReadString('\n')
		if err != nil {
			return nil
		}
		if l = strings.TrimSpace(l); l == "" {
			part++
			continue
		}
		if part != 1 {
			continue
		}
		args := word.FindAllString(l, -1)
		for i := range args {
			if args[i][0] == '"' {
				if _, err := fmt.Sscanf(args[i], "%q", &args[i]); err != nil {
					return nil
				}
			}
		}
		calls = append(calls, parsePut(args[1:]))
	}
	return calls
}

// TestScripts runs the scripts with sh and wants every key with every byte of its value to arrive.
func TestScripts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	states := history(t, path, 300)
	var last int64
	for rev := range states {
		last = max(last, rev)
	}
	for _, c := range []struct {
		format extract.Format
		absent bool
	}{{extract.Put, false}, {extract.Txn, false}, {extract.Txn, true}} {
		t.Run(fmt.Sprintf("%s-%v", c.format, c.absent), func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out.sh")
			res := run(t, path, extract.Options{Format: c.format, OnlyIfAbsent: c.absent, Out: out})
			got := map[string]string{}
			for _, c := range played(t, out) {
				got[string(c.Key)] = string(c.Value)
			}
			want, zero := map[string]string{}, 0
			for _, k := range states[last] {
				if strings.Contains(k.Key, "\x00") && c.format == extract.Put {
					zero++
					continue
				}
				want[k.Key] = k.Value
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-held +played)\n%s", d)
			}
			if (len(res.LeftOut) == 1) != (zero == 1) || res.Short() != (zero == 1) {
				t.Errorf("%d keys cannot be said, the result tells %+v", zero, res.LeftOut)
			}
		})
	}
}

// TestScriptLeases: each lease is granted once, with what remains of it and at least one second. A key without a lease
// has none, and one whose lease is gone is put without.
func TestScriptLeases(t *testing.T) {
	path := smallDB(t)
	grant(t, path, 0x99, 0)
	for _, c := range []struct {
		format extract.Format
		mode   extract.LeaseMode
		grants int
		want   map[string]string
	}{
		{extract.Put, extract.LeaseGrant, 2, map[string]string{"b": "123420", "b2": "123420", "c": "12341"}},
		{extract.Txn, extract.LeaseGrant, 2, map[string]string{"b": "123420", "b2": "123420", "c": "12341"}},
		{extract.Put, extract.LeaseDetach, 0, map[string]string{"b": "", "b2": "", "c": ""}},
		{extract.Txn, extract.LeaseDetach, 0, map[string]string{"b": "", "b2": "", "c": ""}},
	} {
		out := filepath.Join(t.TempDir(), "out.sh")
		run(t, path, extract.Options{Format: c.format, Leases: c.mode, Out: out})
		got := map[string]string{}
		for _, c := range played(t, out) {
			got[string(c.Key)] = string(c.Lease)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s, %s (-want +played)\n%s", c.format, c.mode, d)
		}
		script, err := os.ReadFile(out)
		if err != nil || strings.Count(string(script), "=$(grant ") != c.grants {
			t.Errorf("%s, %s: %v\n%s", c.format, c.mode, err, script)
		}
	}
}

// TestTxnBounds: a transaction has at most 100 puts and 1 MiB, below the server's limits.
func TestTxnBounds(t *testing.T) {
	const word = len(`put -- "k1" ""`)
	for name, c := range map[string]struct{ keys, size, txns int }{
		"100 keys": {100, 1, 1}, "101 keys": {101, 1, 2}, "201 keys": {201, 1, 3},
		"1 MiB": {2, 1<<19 - word, 1}, "more": {2, 1<<19 - word + 1, 2}, "6 keys": {6, 1 << 18, 2},
	} {
		path := filepath.Join(t.TempDir(), "db")
		s, done := store(t, path)
		for i := range c.keys {
			s.Put(fmt.Appendf(nil, "k%d", i), []byte(strings.Repeat("v", c.size)), 0)
		}
		done()
		var out strings.Builder
		res, err := extract.Run(t.Context(), path, extract.Options{Format: extract.Txn, Stream: &out})
		if err != nil || res.Keys != int64(c.keys) {
			t.Fatal(err, res)
		}
		if n := strings.Count(out.String(), " txn "); n != c.txns || strings.Count(out.String(), "\nput ") != c.keys {
			t.Errorf("%s: %d transactions, want %d", name, n, c.txns)
		}
	}
}

func played(t *testing.T, script string) (calls []call) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "calls")
	cmd := exec.Command("sh", script)
	cmd.Env = append(os.Environ(), asEtcdctl+"="+log, "ETCDCTL="+os.Args[0], "HOME=wrong")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for d := json.NewDecoder(f); d.More(); {
		var c call
		if err := d.Decode(&c); err != nil {
			t.Fatal(err)
		}
		calls = append(calls, c)
	}
	return calls
}
