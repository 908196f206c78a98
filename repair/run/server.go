package run

import (
	"context"
	"errors"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/copies"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// server chooses what runs the copies. asTheyAre is true when servers start on copies of the sources with their bucket
// members unchanged.
func (s *session) server(ctx context.Context, set *evidence.Set, asTheyAre bool) (node.Server, error) {
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
	if minor := s.plan.Cluster.Minor; len(members) == 0 && minor > 0 { // no database shows the version
		need.Written = node.Version{Major: 3, Minor: minor}
	}
	need.BucketOnlyMembers = asTheyAre && s.plan.HasBucketOnlyMembers()
	server, err := node.Choose(ctx, need, s.o.EtcdBinary)
	if err != nil {
		return server, s.withoutServer(err)
	}
	s.out.Raises = need.Raises(server.Version)
	return server, nil
}

// withoutServer adds to a refusal what can be done with the available servers.
func (s *session) withoutServer(err error) error {
	var refused *refusal.Error
	clone := s.plan.Way(plan.Clone)
	if !s.plan.HasBucketOnlyMembers() || clone == nil || !clone.Possible || !errors.As(err, &refused) {
		return err
	}
	more := *refused
	more.Hint += "; --mode clone needs none: new databases carry raft's own list"
	return &more
}

// started reports whether a server is started on a copy of that source.
func (s *session) started(label string) bool {
	m := s.bySource(label)
	return m != nil && m.Startable
}
