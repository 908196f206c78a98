package repair

import (
	"context"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/copies"
)

// server chooses what runs the copies.
func (s *session) server(ctx context.Context, set *evidence.Set) (node.Server, error) {
	var members []*evidence.Member
	for _, m := range set.Members {
		if m.DB != nil && m.DB.Handle != nil && m.ClusterID == s.plan.Cluster.ID {
			members = append(members, m)
		}
	}
	need, err := copies.NeedOf(ctx, members, func(m *evidence.Member) bool { return s.started(m.Label()) })
	if err != nil {
		return node.Server{}, err
	}
	if minor := s.plan.Cluster.Minor; len(members) == 0 && minor > 0 { // no database shows it
		need.Written = node.Version{Major: 3, Minor: minor}
	}
	server, err := node.Choose(ctx, need, s.o.EtcdBinary)
	if err != nil {
		return server, err
	}
	s.out.Raises = need.Raises(server.Version)
	return server, nil
}

// started tells whether a server is started on a copy of that source.
func (s *session) started(label string) bool {
	m := s.bySource(label)
	return m != nil && m.Startable
}

// upgrade refuses to hand out data dirs that the cluster's own servers can not open any more.
func (s *session) upgrade(throwAway bool) error {
	if throwAway || s.o.AllowUpgrade || s.out.Raises == "" {
		return nil
	}
	return refusedf("name the cluster's own server with --etcd-binary, use --mode clone, which leaves versions as "+
		"they are, or accept it with --allow-upgrade", "%s", s.out.Raises)
}

// need is how much room the copies of all members, their successors and a backup take at most.
func (s *session) need(set *evidence.Set) int64 {
	var sources, db int64
	for _, m := range set.Members {
		if s.started(m.Label()) {
			sources += m.Source.Manifest.Bytes
		}
		if m.Label() == s.plan.Best.Name && m.DB != nil && m.DB.Handle != nil {
			db = m.DB.Handle.Size()
		}
	}
	rejoin := 0
	for i := range s.plan.Members {
		if p := &s.plan.Members[i]; p.rejoins() || p.Action == StandIn {
			rejoin++
		}
	}
	return sandboxNeeds(sources, db, rejoin)
}

// sandboxFillers is how many proposals make a server in the sandbox drop the start of its in-memory log: with the flags
// it is started with, a hundred entries and a little more. Servers without a flag for the entries behind a snapshot
// keep 5,000 of them.
func sandboxFillers(v node.Version) int {
	if !v.CanSetCatchup() {
		return 5_000 + 250
	}
	return 250
}
