package dumplog

import (
	"fmt"
	"strconv"
)

// request writes the arguments of a request.
func (w *describer) request(r *Request) {
	switch {
	case r.Put != nil:
		w.put(r.Put)
	case r.Range != nil:
		w.rangeRequest(r.Range)
	case r.DeleteRange != nil:
		w.deleteRange(r.DeleteRange)
	case r.Txn != nil:
		w.txn(r.Txn)
	case r.Compaction != nil:
		w.int("revision", r.Compaction.Revision)
		w.flag("physical", r.Compaction.Physical)
	case r.LeaseGrant != nil:
		w.lease(r.LeaseGrant.ID)
		w.add(" ttl=", strconv.FormatInt(r.LeaseGrant.TTL, 10), "s")
	case r.LeaseRevoke != nil:
		w.lease(r.LeaseRevoke.ID)
	case r.LeaseCheckpoint != nil:
		for _, c := range r.LeaseCheckpoint.Checkpoints {
			w.lease(c.ID)
			w.add(" remaining=", strconv.FormatInt(c.RemainingTTL, 10), "s")
		}
	case r.Alarm != nil:
		w.add(" ", name(alarmActions[:], r.Alarm.Action), " ", name(alarmTypes[:], r.Alarm.Alarm), " member=",
			r.Alarm.MemberID.String())
	case r.Auth != nil:
		w.auth(r.Auth)
	default:
		w.cluster(r)
	}
}

// cluster writes requests about members and versions.
func (w *describer) cluster(r *Request) {
	switch {
	case r.ClusterVer != nil:
		w.add(" version=", strconv.Quote(r.ClusterVer.Version))
	case r.MemberAttr != nil:
		w.memberAttr(r.MemberAttr)
	case r.Downgrade != nil:
		w.add(" enabled=", strconv.FormatBool(r.Downgrade.Enabled), " version=", strconv.Quote(r.Downgrade.Version))
	case r.DowngradeTest != nil:
		w.add(" version=", strconv.Quote(r.DowngradeTest.Version))
	case r.V2 != nil:
		w.v2(r.V2)
	case r.ConfChange != nil:
		w.confChange(r.ConfChange)
	case r.ConfChangeV2 != nil:
		w.confChangeV2(r.ConfChangeV2)
	}
}

func (w *describer) put(p *PutRequest) {
	w.add(" key=")
	w.bytes(p.Key)
	if p.IgnoreValue {
		w.add(" ignore_value")
	} else {
		w.add(" val=")
		w.value(p.Value)
	}
	w.lease(p.Lease)
	w.flag("ignore_lease", p.IgnoreLease)
	w.flag("prev_kv", p.PrevKV)
}

func (w *describer) rangeRequest(r *RangeRequest) {
	w.keys(r.Key, r.RangeEnd)
	w.int("limit", r.Limit)
	w.int("revision", r.Revision)
	w.int("sort_order", int64(r.SortOrder))
	w.int("sort_target", int64(r.SortTarget))
	w.flag("serializable", r.Serializable)
	w.flag("keys_only", r.KeysOnly)
	w.flag("count_only", r.CountOnly)
	w.int("min_mod_revision", r.MinModRevision)
	w.int("max_mod_revision", r.MaxModRevision)
	w.int("min_create_revision", r.MinCreateRevision)
	w.int("max_create_revision", r.MaxCreateRevision)
}

func (w *describer) deleteRange(r *DeleteRangeRequest) {
	w.keys(r.Key, r.RangeEnd)
	w.flag("prev_kv", r.PrevKV)
}

func (w *describer) txn(t *TxnRequest) {
	w.add(" if (")
	for i := range t.Compare {
		if i > 0 {
			w.add(" && ")
		}
		w.compare(&t.Compare[i])
	}
	w.add(")")
	w.ops(" then {", t.Success)
	if len(t.Failure) > 0 {
		w.ops(" else {", t.Failure)
	}
}

func (w *describer) ops(open string, ops []RequestOp) {
	w.add(open)
	for i := range ops {
		if i > 0 {
			w.add("; ")
		}
		switch op := &ops[i]; {
		case op.Put != nil:
			w.add("put")
			w.put(op.Put)
		case op.Range != nil:
			w.add("range")
			w.rangeRequest(op.Range)
		case op.DeleteRange != nil:
			w.add("delete_range")
			w.deleteRange(op.DeleteRange)
		case op.Txn != nil:
			w.add("txn")
			w.txn(op.Txn)
		default:
			w.add("no known operation")
		}
	}
	w.add("}")
}

var (
	compareTargets = [...]string{"version", "create_revision", "mod_revision", "value", "lease"}
	compareResults = [...]string{"=", ">", "<", "!="}
	alarmActions   = [...]string{"get", "activate", "deactivate"}
	alarmTypes     = [...]string{"none", "NOSPACE", "CORRUPT"}
	permTypes      = [...]string{"READ", "WRITE", "READWRITE"}
)

// name returns the name of an enum value, or the number if it has no name.
func name[T ~int32](names []string, v T) string {
	if v < 0 || int(v) >= len(names) {
		return strconv.Itoa(int(v))
	}
	return names[v]
}

func (w *describer) compare(c *Compare) {
	w.add(name(compareTargets[:], c.Target), "(")
	w.bytes(c.Key)
	if len(c.RangeEnd) > 0 {
		w.add(", ")
		w.bytes(c.RangeEnd)
	}
	w.add(") ", name(compareResults[:], c.Result), " ")
	switch c.Target {
	case 3:
		w.value(c.Value)
	case 4:
		w.add(strconv.FormatUint(uint64(c.Num), 16))
	default:
		w.add(strconv.FormatInt(c.Num, 10))
	}
}

func (w *describer) auth(a *AuthRequest) {
	if a.User != "" {
		w.quoted("user", a.User)
	}
	if a.Role != "" {
		w.quoted("role", a.Role)
	}
	if a.Perm != nil {
		w.add(" ", name(permTypes[:], a.Perm.Type))
		w.keys(a.Perm.Key, a.Perm.RangeEnd)
	}
	if len(a.Key) > 0 || len(a.RangeEnd) > 0 {
		w.keys(a.Key, a.RangeEnd)
	}
	w.flag("no_password", a.NoPassword)
	w.secret("password", a.Password)
	w.secret("hashed_password", a.HashedPassword)
	w.secret("simple_token", a.SimpleToken)
}

func (w *describer) memberAttr(a *ClusterMemberAttrSet) {
	w.add(" member=", a.MemberID.String())
	w.quoted("name", a.Name)
	w.add(fmt.Sprintf(" client_urls=%q", a.ClientURLs))
}

func (w *describer) v2(r *V2Request) {
	w.add(" ", r.Method)
	w.quoted("path", r.Path)
	if a, ok := r.MemberAttr(); ok {
		w.memberAttr(&a)
	} else if v, ok := r.ClusterVersion(); ok {
		w.quoted("version", v)
	} else if r.Val != "" {
		w.add(" val=")
		w.value([]byte(r.Val))
	}
	if r.PrevValue != "" {
		w.add(" prev_value=")
		w.value([]byte(r.PrevValue))
	}
	w.flag("dir", r.Dir)
	w.flag("recursive", r.Recursive)
	w.int("prev_index", int64(r.PrevIndex))
	w.int("expiration", r.Expiration)
	w.int("time", r.Time)
}

func (w *describer) confChange(c *ConfChange) {
	w.add(" ", c.Type.String(), " node=", c.NodeID.String())
	m := c.Member
	if m == nil {
		if len(c.Context) > 0 {
			w.add(" context=")
			w.bytes(c.Context)
		}
		return
	}
	if m.ID != c.NodeID {
		w.add(" context_id=", m.ID.String())
	}
	if m.Name != "" {
		w.quoted("name", m.Name)
	}
	if len(m.PeerURLs) > 0 {
		w.add(fmt.Sprintf(" peer_urls=%q", m.PeerURLs))
	}
	if len(m.ClientURLs) > 0 {
		w.add(fmt.Sprintf(" client_urls=%q", m.ClientURLs))
	}
	w.flag("learner", m.IsLearner)
	w.flag("promote", m.IsPromote)
}

var transitions = [...]string{"auto", "joint_implicit", "joint_explicit"}

func (w *describer) confChangeV2(c *ConfChangeV2) {
	if len(c.Changes) == 0 {
		w.add(" leave joint configuration")
		return
	}
	w.add(" transition=", name(transitions[:], c.Transition))
	for _, s := range c.Changes {
		w.add(" ", s.Type.String(), " node=", s.NodeID.String())
	}
}
