//go:build e2e

package compare_test

import (
	"context"
	"encoding/binary"
	"errors"
	"strconv"

	bolt "go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// scenarioKVSteps are about leases, alarms, rights and compactions.
var scenarioKVSteps = map[string]scenarioStep{
	// flags NODE FLAG… are given to the member from its next start on; use NODE VERSION makes it run that version then.
	"flags": func(s *scenario, args []string) { s.c.Flags(s.node(args[0]), args[1:]...) },
	"use":   func(s *scenario, args []string) { s.c.Use(s.node(args[0]), clustertest.Server(s.T, args[1])) },
	// lease NODE ID TTL KEY… grants a lease under an ID of our choice and attaches keys; revoke NODE ID revokes it.
	"lease": (*scenario).leaseWithID,
	"revoke": func(s *scenario, args []string) {
		ctx, cancel := s.context()
		defer cancel()
		_, err := pb.NewLeaseClient(s.c.Client(s.node(args[0])).ActiveConnection()).LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: s.leaseID(args[1])})
		s.must(err)
	},
	// nested NODE KEY writes KEY from inside a nested transaction as the user app, whether that is refused or not.
	"nested": (*scenario).nestedTxn,
	// corrupt NODE waits until the member knows of a CORRUPT alarm.
	"corrupt": (*scenario).waitCorrupt,
	// droprow NODE BUCKET KEY takes a row out of the copy; a lease is given by its decimal ID.
	"droprow": (*scenario).dropRow,
}

func (s *scenario) leaseID(text string) int64 {
	id, err := strconv.ParseInt(text, 10, 64)
	s.must(err)
	return id
}

func (s *scenario) leaseWithID(args []string) {
	ctx, cancel := s.context()
	defer cancel()
	i, id := s.node(args[0]), s.leaseID(args[1])
	_, err := pb.NewLeaseClient(s.c.Client(i).ActiveConnection()).LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: id, TTL: int64(s.number(args, 2, 60))})
	s.must(err)
	for _, key := range args[3:] {
		s.c.Put(i, key, "leased", clientv3.WithLease(clientv3.LeaseID(id)))
	}
}

func (s *scenario) nestedTxn(args []string) {
	s.c.Login("app", "app secret")
	defer s.c.Login("root", "root secret")
	ctx, cancel := s.context()
	defer cancel()
	_, err := s.c.Client(s.node(args[0])).Txn(ctx).Then(clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut(args[1], "x")}, nil)).Commit()
	s.Logf("%s: %v", s.line, err)
}

func (s *scenario) waitCorrupt(args []string) {
	s.c.WaitUntil("the CORRUPT alarm is raised", func(ctx context.Context) error {
		r, err := s.c.Client(s.node(args[0])).AlarmList(ctx)
		if err != nil {
			return err
		}
		for _, a := range r.Alarms {
			if a.Alarm == pb.AlarmType_CORRUPT {
				return nil
			}
		}
		return errors.New("no alarm yet")
	})
}

func (s *scenario) dropRow(args []string) {
	key := []byte(args[2])
	if args[1] == "lease" {
		key = binary.BigEndian.AppendUint64(nil, uint64(s.leaseID(args[2])))
	}
	db := s.openDB(args[0])
	s.must(db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(args[1]))
		if b.Get(key) == nil {
			return errors.New("no such row")
		}
		return b.Delete(key)
	}))
	s.must(db.Close())
}
