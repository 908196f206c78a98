package apply

import (
	"bytes"
	"slices"
	"sort"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// The types of a permission.
const (
	PermRead  = 0
	PermWrite = 1
	PermBoth  = 2
)

// Check is isOpPermitted of server/auth/store.go, in its order.
func (s *Auth) Check(h dumplog.Header, key, end []byte, write bool) Reason {
	if !s.Enabled {
		return ReasonNone
	}
	if h.AuthRevision == 0 {
		return ReasonUserEmpty
	}
	if h.AuthRevision < s.Revision {
		return ReasonOldAuth
	}
	u := s.Users[h.Username]
	if u == nil {
		return ReasonPermission
	}
	if slices.Contains(u.Roles, Root) || s.covered(u, key, end, write) {
		return ReasonNone
	}
	return ReasonPermission
}

// covered reports whether the union of the user's permissions of the wanted type covers [key, end). A permission that
// begins at the empty key covers nothing: etcd orders it after all others (BytesAffineComparable of pkg/adt).
func (s *Auth) covered(u *User, key, end []byte, write bool) bool {
	var spans [][2]string
	for _, role := range u.Roles {
		for _, p := range s.Roles[role] {
			if p.Key != "" && (p.Type == PermBoth || write && p.Type == PermWrite || !write && p.Type == PermRead) {
				spans = append(spans, span(p.Key, p.End))
			}
		}
	}
	sort.Slice(spans, func(i, j int) bool { return spans[i][0] < spans[j][0] })
	want := span(string(key), string(end))
	at := want[0]
	for _, sp := range spans {
		if sp[0] > at {
			break
		}
		if sp[1] != openEnd && sp[1] <= at {
			continue
		}
		if at = sp[1]; at == openEnd || want[1] != openEnd && at >= want[1] {
			return true
		}
	}
	return false
}

// openEnd means the end of the key space. It never occurs as the start of a span, because keys are not empty.
const openEnd = ""

func span(key, end string) [2]string {
	switch {
	case end == "":
		return [2]string{key, key + "\x00"}
	case end == "\x00":
		return [2]string{key, openEnd}
	}
	return [2]string{key, end}
}

// InRange reports whether key is in the range, as etcd interprets the pair.
func InRange(key string, from, end []byte) bool {
	switch {
	case len(end) == 0:
		return key == string(from)
	case len(end) == 1 && end[0] == 0:
		return key >= string(from)
	}
	return key >= string(from) && bytes.Compare([]byte(key), end) < 0
}

// Rights are the permission rules of requests that access keys. KeysOf lists the keys attached to a lease. KeepsRanges
// says whether the member checks the ranges of a transaction. Releases before TxnRangesKept drop them if no client
// waits for the answer.
type Rights struct {
	Auth        *Auth
	KeysOf      func(lease int64) []string
	KeepsRanges release.Answer
}

// Put checks the key, and every other key of the put's lease.
func (r *Rights) Put(h dumplog.Header, put *dumplog.PutRequest) Verdict {
	if reason := r.Auth.Check(h, put.Key, nil, true); reason != ReasonNone {
		return Verdict{Reason: reason}
	}
	if put.Lease != 0 {
		if v := r.lease(h, put.Lease); v.Refused() {
			return v
		}
	}
	if put.PrevKV {
		return Verdict{Reason: r.Auth.Check(h, put.Key, nil, false)}
	}
	return Verdict{}
}

// Delete checks write permission on the range, and with prev_kv also read permission.
func (r *Rights) Delete(h dumplog.Header, d *dumplog.DeleteRangeRequest) Verdict {
	if reason := r.Auth.Check(h, d.Key, d.RangeEnd, true); reason != ReasonNone || !d.PrevKV {
		return Verdict{Reason: reason}
	}
	return Verdict{Reason: r.Auth.Check(h, d.Key, d.RangeEnd, false)}
}

// Revoke needs write permission on every key of the lease. Newer releases always allow root. Older ones refuse root
// with an old auth revision, as for a lease that expired before auth was changed.
func (r *Rights) Revoke(h dumplog.Header, lease int64) Verdict { return r.lease(h, lease) }

func (r *Rights) lease(h dumplog.Header, lease int64) Verdict {
	if !r.Auth.Enabled {
		return Verdict{}
	}
	for _, k := range r.KeysOf(lease) {
		reason := r.Auth.Check(h, []byte(k), nil, true)
		switch {
		case reason == ReasonNone:
			continue
		case !r.Auth.IsRoot(h.Username) && (r.Auth.Known || h.Username != Root):
			return Verdict{Reason: reason}
		}
		switch r.Auth.Version.Has(release.LeaseCheckSkipsRoot) {
		case release.Yes:
			return Verdict{}
		case release.No:
			return Verdict{Reason: reason}
		}
		return Verdict{reason, release.LeaseCheckSkipsRoot}
	}
	return Verdict{}
}

// Txn checks the compares and both branches.
func (r *Rights) Txn(h dumplog.Header, t *dumplog.TxnRequest) Verdict {
	if !r.Auth.Enabled {
		return Verdict{}
	}
	for _, c := range t.Compare {
		if reason := r.Auth.Check(h, c.Key, c.RangeEnd, false); reason != ReasonNone {
			return Verdict{Reason: reason}
		}
	}
	var open Verdict
	for _, ops := range [][]dumplog.RequestOp{t.Success, t.Failure} {
		for i := range ops {
			v := r.op(h, &ops[i])
			if v.Refused() && v.Rule == nil {
				return v
			}
			if v.Refused() && !open.Refused() {
				open = v
			}
		}
	}
	return open
}

func (r *Rights) op(h dumplog.Header, op *dumplog.RequestOp) Verdict {
	version := r.Auth.Version
	switch {
	case op.Range != nil:
		return byAnswer(r.KeepsRanges, release.TxnRangesKept, func() Verdict {
			return Verdict{Reason: r.Auth.Check(h, op.Range.Key, op.Range.RangeEnd, false)}
		})
	case op.Put != nil:
		if reason := r.Auth.Check(h, op.Put.Key, nil, true); reason != ReasonNone {
			return Verdict{Reason: reason}
		}
		return byRule(version, release.TxnPutChecks, func() Verdict { return r.Put(h, op.Put) })
	case op.DeleteRange != nil:
		return r.Delete(h, op.DeleteRange)
	case op.Txn != nil:
		// Every release keeps the ranges of a nested transaction.
		inner := Rights{Auth: r.Auth, KeysOf: r.KeysOf, KeepsRanges: release.Yes}
		return byRule(version, release.NestedTxnPermission, func() Verdict { return inner.Txn(h, op.Txn) })
	}
	return Verdict{}
}
