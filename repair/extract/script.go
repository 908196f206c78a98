package extract

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/etcd-medic/etcd-medic/shell"
)

// scriptHead is the start of a script. The script stops at the first command that fails.
const scriptHead = `#!/bin/sh
# Written by etcd-medic from %s at revision %d. etcdctl takes its flags from the environment:
#   ETCDCTL_ENDPOINTS, ETCDCTL_CACERT, ETCDCTL_CERT, ETCDCTL_KEY, ETCDCTL_USER
# (etcdctl 3.3 needs ETCDCTL_API=3 too).
# %s
set -eu
LC_ALL=C
export LC_ALL
etcdctl=${ETCDCTL:-etcdctl}
grant() { "$etcdctl" lease grant "$1" | cut -d' ' -f2; }
`

func (x *reader) head(f *file, what string) error {
	_, err := fmt.Fprintf(f, scriptHead, shell.Comment(x.o.Source), x.res.Revision, what)
	return err
}

// leaseVar returns the shell variable of a record's lease, granted on first use; "" for a key without a lease.
func (x *reader) leaseVar(f *file, rec *Record, granted map[int64]bool) (string, error) {
	if rec.Lease == 0 {
		return "", nil
	}
	name := "lease_" + strconv.FormatUint(uint64(rec.Lease), 16)
	if granted[rec.Lease] {
		return name, nil
	}
	granted[rec.Lease] = true
	_, err := fmt.Fprintf(f, "%s=$(grant %d)\n", name, max(x.leases[rec.Lease], 1))
	return name, err
}

// putScript calls etcdctl put once per key. Values go through stdin, which accepts any byte.
type putScript struct {
	*file
	x       *reader
	granted map[int64]bool
	begun   bool
	buf     []byte
}

func newPutScript(f *file, x *reader) *putScript {
	return &putScript{file: f, x: x, granted: map[int64]bool{}}
}

func (p *putScript) put(rec *Record) error {
	if bytes.IndexByte(rec.Key, 0) >= 0 {
		p.x.res.leave("a key with a zero byte cannot be an argument of a command; jsonl, txn, backup and a cluster "+
			"take it", rec.Key)
		return nil
	}
	if !p.begun {
		p.begun = true
		if err := p.x.head(p.file, "Each line puts one key; an existing one is overwritten."); err != nil {
			return err
		}
	}
	lease, err := p.x.leaseVar(p.file, rec, p.granted)
	if err != nil {
		return err
	}
	b := appendPut(p.buf[:0], rec.Key, rec.Value, lease)
	p.buf = b
	_, err = p.Write(b)
	return err
}

// The bounds of one transaction: below the server's --max-txn-ops (128) and --max-request-bytes (1.5 MiB).
const (
	txnOps   = 100
	txnBytes = 1 << 20
)

// txnScript writes input for etcdctl txn. With OnlyIfAbsent, each key has its own transaction, so that an existing key
// does not prevent the others.
type txnScript struct {
	*file
	x       *reader
	granted map[int64]bool
	begun   bool
	ops     []string
	size    int
	what    string
}

func newTxnScript(f *file, x *reader) *txnScript {
	t := &txnScript{file: f, x: x, granted: map[int64]bool{}, what: "Keys are put in transactions; existing ones are " +
		"overwritten."}
	if x.o.OnlyIfAbsent {
		t.what = "Each transaction puts one key, only where it does not exist; it prints FAILURE where it does."
	}
	return t
}

func (t *txnScript) put(rec *Record) error {
	if !t.begun {
		t.begun = true
		if err := t.x.head(t.file, t.what); err != nil {
			return err
		}
	}
	lease, err := t.x.leaseVar(t.file, rec, t.granted)
	if err != nil {
		return err
	}
	op := "put "
	if lease != "" {
		op += "--lease=$" + lease + " "
	}
	op += "-- " + txnWord(rec.Key) + " " + txnWord(rec.Value)
	if t.x.o.OnlyIfAbsent {
		_, err := fmt.Fprintf(t, "\"$etcdctl\" txn <<TXN\ncreate(%s) = \"0\"\n\n%s\n\n\nTXN\n", txnWord(rec.Key), op)
		return err
	}
	if len(t.ops) == txnOps || t.size+len(op) > txnBytes {
		if err := t.flush(); err != nil {
			return err
		}
	}
	t.ops, t.size = append(t.ops, op), t.size+len(op)
	return nil
}

// flush writes the collected transaction: no compares, the puts, no failure branch.
func (t *txnScript) flush() error {
	if len(t.ops) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(t, "\"$etcdctl\" txn >/dev/null <<TXN\n\n%s\n\n\nTXN\n", strings.Join(t.ops, "\n"))
	t.ops, t.size = t.ops[:0], 0
	return err
}

func (t *txnScript) close(err error) error {
	if err == nil {
		err = t.flush()
	}
	return t.file.close(err)
}

// txnWord quotes bytes for the language of etcdctl txn (etcdctl/ctlv3/command/util.go, Argify) inside a here-document,
// where the shell still reads $, ` and some backslashes.
func txnWord(v []byte) string {
	s := strconv.QuoteToASCII(string(v))
	s = strings.ReplaceAll(s, `\\`, `\x5c`)
	return strings.NewReplacer("$", `\x24`, "`", `\x60`, `\"`, `\x22`).Replace(s)
}
