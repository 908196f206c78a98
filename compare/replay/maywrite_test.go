package replay

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestMayWrite: what no state of the key space lets write is not looked for in a database.
func TestMayWrite(t *testing.T) {
	put := []dumplog.RequestOp{{Put: &dumplog.PutRequest{Key: []byte("k")}}}
	read := []dumplog.RequestOp{{Range: &dumplog.RangeRequest{Key: []byte("k")}}}
	below := func(target dumplog.CompareTarget, n int64) []dumplog.Compare {
		return []dumplog.Compare{{Result: apply.ResultLess, Target: target, Key: []byte("k"), Num: n}}
	}
	equal := func(n int64) []dumplog.Compare {
		return []dumplog.Compare{{Result: apply.ResultEqual, Target: apply.TargetVersion, Key: []byte("k"), Num: n}}
	}
	nested := []dumplog.RequestOp{{Txn: &dumplog.TxnRequest{Compare: below(apply.TargetMod, 0), Success: put}}}
	for _, c := range []struct {
		name string
		txn  dumplog.TxnRequest
		want bool
	}{
		{"a put", dumplog.TxnRequest{Success: put}, true},
		{"a read", dumplog.TxnRequest{Success: read, Failure: read}, false},
		{"a put behind no condition, in the other branch", dumplog.TxnRequest{Success: read, Failure: put}, false},
		{"a put if a version is below 0", dumplog.TxnRequest{Compare: below(apply.TargetVersion, 0), Success: put},
			false},
		{"a put unless a version is below 0", dumplog.TxnRequest{Compare: below(apply.TargetVersion, 0), Failure: put},
			true},
		{"a put if the key is not there", dumplog.TxnRequest{Compare: below(apply.TargetCreate, 1), Success: put},
			true},
		{"a put if a lease is below 0", dumplog.TxnRequest{Compare: below(apply.TargetLease, 0), Success: put}, true},
		{"a put if a revision is below 1", dumplog.TxnRequest{Compare: below(apply.TargetMod, 1), Success: put}, true},
		{"a put if a version is -1", dumplog.TxnRequest{Compare: equal(-1), Success: put}, false},
		{"a put if a version is 0", dumplog.TxnRequest{Compare: equal(0), Success: put}, true},
		{"a delete", dumplog.TxnRequest{Success: []dumplog.RequestOp{{DeleteRange: &dumplog.DeleteRangeRequest{}}}}, true},
		{"a put below a condition that never holds", dumplog.TxnRequest{Success: nested}, false},
	} {
		if got := mayWrite(&dumplog.Request{Kind: dumplog.KindTxn, Txn: &c.txn}); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
