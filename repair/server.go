package repair

import (
	"context"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/node"
)

// server chooses what runs the copies.
func (s *session) server(ctx context.Context, set *evidence.Set) (node.Server, error) {
	var need node.Need
	v2 := ""
	for _, m := range set.Members {
		if m.DB == nil || m.DB.Handle == nil || m.ClusterID != s.plan.Cluster.ID {
			continue
		}
		for _, v := range []struct {
			text string
			to   *node.Version
		}{{m.DB.Meta.StorageVersion, &need.Storage}, {m.DB.Cluster.Version, &need.Cluster}} {
			if got, err := node.ParseVersion(v.text); err == nil && !v.to.AtLeast(got) {
				*v.to = got
			}
		}
		tail, foreign, err := v2Tail(ctx, m)
		if err != nil {
			return node.Server{}, err
		}
		need.V2EntriesAfterSnapshot = need.V2EntriesAfterSnapshot || tail
		if foreign && m.Label() != "" && s.started(m.Label()) {
			v2 = m.Label()
		}
	}
	server, err := node.Choose(ctx, need, s.o.EtcdBinary)
	if err != nil {
		return server, err
	}
	if v2 != "" && server.Version.Minor >= 6 {
		older, ok := node.Embedded(5)
		if _, opens := need.Opens(older.Version); !ok || !opens {
			return server, refusedf("name a server of the line that wrote the dirs with --etcd-binary, or take a build that brings etcd 3.5 (make build)",
				"the log of %s holds v2 requests behind its last snapshot (health checks write them up to 3.4), and %s panics on them", v2, server)
		}
		server = older
	}
	s.out.Raises = need.Raises(server.Version)
	return server, nil
}

// started tells whether a server is started on a copy of that source.
func (s *session) started(label string) bool {
	m := s.bySource(label)
	return m != nil && m.Startable
}

// v2Tail tells whether the log holds v2 requests behind its newest snapshot, on which 3.7 panics, and whether one of them is foreign:
// neither a member's attributes nor the cluster version, so that 3.6 panics too (v2ToV3Request in its apply_v2.go).
func v2Tail(ctx context.Context, m *evidence.Member) (some, foreign bool, err error) {
	if m.WAL == nil || m.WAL.Log == nil {
		return false, false, nil
	}
	var after uint64
	for _, s := range m.WAL.Summary.Snapshots {
		after = max(after, s.Index)
	}
	d := dumplog.Decoder{}
	for e, err := range m.WAL.Log.Entries(ctx, m.WAL.Summary) {
		if err != nil {
			return some, foreign, ctx.Err() // damage is in the diagnosis already
		}
		if e.Index <= after || e.Overwritten {
			continue
		}
		if req, err := d.Decode(&e); err == nil && req != nil && req.Kind == dumplog.KindV2 && req.V2 != nil {
			some = true
			foreign = foreign || !membershipV2(req.V2)
		}
	}
	return some, foreign, nil
}

func membershipV2(r *dumplog.V2Request) bool {
	_, attr := r.MemberAttr()
	return r.Method == "PUT" && (attr || r.Path == "/0/version")
}

// upgrade refuses to hand out data dirs that the cluster's own servers can not open any more.
func (s *session) upgrade(throwAway bool) error {
	if throwAway || s.o.AllowUpgrade || s.out.Raises == "" {
		return nil
	}
	return refusedf("name the cluster's own server with --etcd-binary, use --mode clone, which leaves versions as they are, or accept it with --allow-upgrade", "%s", s.out.Raises)
}

// walRoom is what a server sets aside for a log: the segment it writes and the next one.
const walRoom = 128 << 20

// need is how much room the copies of all members, their successors and a backup take at most.
func (s *session) need(set *evidence.Set) int64 {
	var n int64
	for _, m := range set.Members {
		n += m.Source.Manifest.Bytes
		if m.Label() == s.plan.Best.Name && m.DB != nil && m.DB.Handle != nil {
			n += m.DB.Handle.Size()
			for i := range s.plan.Members {
				if s.plan.Members[i].rejoins() {
					n += 2*m.DB.Handle.Size() + walRoom
				}
			}
		}
	}
	return n
}

// sandboxFillers is how many proposals make a server in the sandbox drop the start of its in-memory log: with the flags it is started
// with, a hundred entries and a little more. Servers without a flag for the entries behind a snapshot keep 5,000 of them.
func sandboxFillers(v node.Version) int {
	if !v.CanSetCatchup() {
		return 5_000 + 250
	}
	return 250
}
