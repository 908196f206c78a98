package render

import (
	"strconv"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// writeRequest passes the content of a decoded request to f. Passwords, hashes and tokens go through Secret.
func writeRequest(f Fields, r *dumplog.Request) {
	switch {
	case r.Put != nil:
		writePut(f, r.Put)
	case r.Range != nil:
		writeRange(f, r.Range)
	case r.DeleteRange != nil:
		writeDelete(f, r.DeleteRange)
	case r.Txn != nil:
		writeTxn(f, r.Txn)
	case r.Compaction != nil:
		f.Int("revision", r.Compaction.Revision)
		flag(f, "physical", r.Compaction.Physical)
	case r.LeaseGrant != nil:
		f.ID("lease", uint64(r.LeaseGrant.ID))
		f.Int("ttl", r.LeaseGrant.TTL)
	case r.LeaseRevoke != nil:
		f.ID("lease", uint64(r.LeaseRevoke.ID))
	case r.LeaseCheckpoint != nil:
		cps := r.LeaseCheckpoint.Checkpoints
		f.List("checkpoints", len(cps), func(i int, f Fields) {
			f.ID("lease", uint64(cps[i].ID))
			f.Int("remainingTTL", cps[i].RemainingTTL)
		})
	case r.Alarm != nil:
		f.Str("action", nameOf(r.Alarm.Action, "get", "activate", "deactivate"))
		f.ID("member", uint64(r.Alarm.MemberID))
		f.Str("alarm", nameOf(r.Alarm.Alarm, "none", "NOSPACE", "CORRUPT"))
	case r.Auth != nil:
		writeAuth(f, r.Auth)
	default:
		writeClusterRequest(f, r)
	}
	writeUnknown(f, r.Unknown)
}

// writeClusterRequest handles the requests that change the cluster and not the keys.
func writeClusterRequest(f Fields, r *dumplog.Request) {
	switch {
	case r.ClusterVer != nil:
		f.Str("version", r.ClusterVer.Version)
	case r.MemberAttr != nil:
		f.ID("member", uint64(r.MemberAttr.MemberID))
		f.Str("name", r.MemberAttr.Name)
		f.Strs("clientURLs", r.MemberAttr.ClientURLs)
	case r.Downgrade != nil:
		f.Bool("enabled", r.Downgrade.Enabled)
		f.Str("version", r.Downgrade.Version)
	case r.DowngradeTest != nil:
		f.Str("version", r.DowngradeTest.Version)
	case r.V2 != nil:
		writeV2(f, r.V2)
	case r.ConfChange != nil:
		writeConfChange(f, r.ConfChange)
	case r.ConfChangeV2 != nil:
		writeConfChangeV2(f, r.ConfChangeV2)
	}
}

func writePut(f Fields, p *dumplog.PutRequest) {
	f.Bytes("key", p.Key)
	f.Value("val", p.Value)
	if p.Lease != 0 {
		f.ID("lease", uint64(p.Lease))
	}
	flag(f, "prevKV", p.PrevKV)
	flag(f, "ignoreValue", p.IgnoreValue)
	flag(f, "ignoreLease", p.IgnoreLease)
}

func writeRange(f Fields, r *dumplog.RangeRequest) {
	writeKeys(f, r.Key, r.RangeEnd)
	num(f, "limit", r.Limit)
	num(f, "revision", r.Revision)
	num(f, "sortOrder", int64(r.SortOrder))
	num(f, "sortTarget", int64(r.SortTarget))
	flag(f, "serializable", r.Serializable)
	flag(f, "keysOnly", r.KeysOnly)
	flag(f, "countOnly", r.CountOnly)
	num(f, "minModRevision", r.MinModRevision)
	num(f, "maxModRevision", r.MaxModRevision)
	num(f, "minCreateRevision", r.MinCreateRevision)
	num(f, "maxCreateRevision", r.MaxCreateRevision)
}

func writeDelete(f Fields, r *dumplog.DeleteRangeRequest) {
	writeKeys(f, r.Key, r.RangeEnd)
	flag(f, "prevKV", r.PrevKV)
}

func writeKeys(f Fields, key, end []byte) {
	f.Bytes("key", key)
	if len(end) > 0 {
		f.Bytes("rangeEnd", end)
	}
}

func writeTxn(f Fields, t *dumplog.TxnRequest) {
	f.List("compare", len(t.Compare), func(i int, f Fields) { writeCompare(f, &t.Compare[i]) })
	f.List("success", len(t.Success), func(i int, f Fields) { writeOp(f, &t.Success[i]) })
	f.List("failure", len(t.Failure), func(i int, f Fields) { writeOp(f, &t.Failure[i]) })
}

func writeCompare(f Fields, c *dumplog.Compare) {
	writeKeys(f, c.Key, c.RangeEnd)
	f.Str("target", nameOf(int32(c.Target), "version", "create", "mod", "value", "lease"))
	f.Str("result", nameOf(int32(c.Result), "equal", "greater", "less", "not-equal"))
	switch c.Target {
	case 3:
		f.Value("val", c.Value)
	case 4:
		f.ID("lease", uint64(c.Num))
	default:
		f.Int("num", c.Num)
	}
}

func writeOp(f Fields, op *dumplog.RequestOp) {
	switch {
	case op.Put != nil:
		f.Str("op", "put")
		writePut(f, op.Put)
	case op.Range != nil:
		f.Str("op", "range")
		writeRange(f, op.Range)
	case op.DeleteRange != nil:
		f.Str("op", "delete_range")
		writeDelete(f, op.DeleteRange)
	case op.Txn != nil:
		f.Str("op", "txn")
		writeTxn(f, op.Txn)
	default:
		f.Str("op", "unknown")
	}
}

func writeAuth(f Fields, a *dumplog.AuthRequest) {
	word(f, "user", a.User)
	word(f, "role", a.Role)
	secret(f, "password", a.Password)
	secret(f, "hashedPassword", a.HashedPassword)
	secret(f, "simpleToken", a.SimpleToken)
	flag(f, "options", a.HasOptions)
	flag(f, "noPassword", a.NoPassword)
	if a.Perm != nil {
		f.Str("permission", permission(a.Perm))
	}
	if len(a.Key) > 0 || len(a.RangeEnd) > 0 {
		f.Str("range", dumpdb.RangeString(a.Key, a.RangeEnd))
	}
}

func permission(p *dumplog.Permission) string {
	return dumpdb.Permission{Type: p.Type, Key: p.Key, RangeEnd: p.RangeEnd}.String()
}

func writeV2(f Fields, r *dumplog.V2Request) {
	f.Str("method", r.Method)
	f.Str("path", r.Path)
	f.Value("val", []byte(r.Val))
	if r.PrevValue != "" {
		f.Value("prevValue", []byte(r.PrevValue))
	}
	flag(f, "dir", r.Dir)
	flag(f, "wait", r.Wait)
	flag(f, "recursive", r.Recursive)
	flag(f, "sorted", r.Sorted)
	flag(f, "quorum", r.Quorum)
	flag(f, "stream", r.Stream)
	num(f, "prevIndex", int64(r.PrevIndex))
	num(f, "since", int64(r.Since))
	if r.PrevExist != nil {
		f.Bool("prevExist", *r.PrevExist)
	}
	if r.Refresh != nil {
		f.Bool("refresh", *r.Refresh)
	}
	num(f, "expiration", r.Expiration)
	num(f, "time", r.Time)
}

func writeConfChange(f Fields, c *dumplog.ConfChange) {
	f.Str("change", confChangeName(c.Type))
	f.ID("node", uint64(c.NodeID))
	if m := c.Member; m != nil {
		word(f, "name", m.Name)
		if len(m.PeerURLs) > 0 {
			f.Strs("peerURLs", m.PeerURLs)
		}
		if len(m.ClientURLs) > 0 {
			f.Strs("clientURLs", m.ClientURLs)
		}
		flag(f, "learner", m.IsLearner)
		flag(f, "promote", m.IsPromote)
		return
	}
	if len(c.Context) > 0 {
		f.Bytes("context", c.Context)
	}
}

func writeConfChangeV2(f Fields, c *dumplog.ConfChangeV2) {
	f.Str("transition", nameOf(c.Transition, "auto", "joint-implicit", "joint-explicit"))
	f.List("changes", len(c.Changes), func(i int, f Fields) {
		f.Str("change", confChangeName(c.Changes[i].Type))
		f.ID("node", uint64(c.Changes[i].NodeID))
	})
	if len(c.Context) > 0 {
		f.Bytes("context", c.Context)
	}
}

func confChangeName(t dumplog.ConfChangeType) string {
	return nameOf(int32(t), "add-node", "remove-node", "update-node", "add-learner")
}

func writeUnknown(f Fields, u []dumplog.UnknownField) {
	if len(u) == 0 {
		return
	}
	f.List("unknown", len(u), func(i int, f Fields) {
		word(f, "in", u[i].Path)
		f.Int("field", int64(u[i].Num))
		f.Int("wire", int64(u[i].Wire))
		f.Raw("raw", u[i].Raw)
	})
}

func nameOf(n int32, names ...string) string {
	if n >= 0 && int(n) < len(names) {
		return names[n]
	}
	return strconv.Itoa(int(n))
}

func flag(f Fields, name string, v bool) {
	if v {
		f.Bool(name, v)
	}
}

func num(f Fields, name string, v int64) {
	if v != 0 {
		f.Int(name, v)
	}
}

func word(f Fields, name, v string) {
	if v != "" {
		f.Str(name, v)
	}
}

func secret(f Fields, name, v string) {
	if v != "" {
		f.Secret(name, []byte(v))
	}
}
