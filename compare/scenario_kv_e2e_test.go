//go:build e2e

package compare_test

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strconv"

	bolt "go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// scenarioKVSteps are about leases, alarms, rights and compactions.
var scenarioKVSteps = map[string]scenarioStep{
	// flags NODE FLAG… are given to the member from its next start on; use NODE VERSION makes it run that version then.
	"flags": func(s *scenario, args []string) { s.c.Flags(s.node(args[0]), args[1:]...) },
	"use":   func(s *scenario, args []string) { s.c.Use(s.node(args[0]), clustertest.Server(s.T, args[1])) },
	// authoff NODE disables auth.
	"authoff": func(s *scenario, args []string) {
		ctx, cancel := s.context()
		defer cancel()
		_, err := s.c.Client(s.node(args[0])).AuthDisable(ctx)
		s.must(err)
		s.c.Login("", "")
	},
	// lease NODE ID TTL KEY… grants a lease under an ID of our choice and attaches keys; revoke NODE ID revokes it.
	"lease": (*scenario).leaseWithID,
	"revoke": func(s *scenario, args []string) {
		ctx, cancel := s.context()
		defer cancel()
		_, err := pb.NewLeaseClient(s.c.Client(s.node(args[0])).ActiveConnection()).LeaseRevoke(ctx,
			&pb.LeaseRevokeRequest{ID: s.leaseID(args[1])})
		s.must(err)
	},
	// tryrevoke NODE ID takes a refusal for an answer; expire NODE ID executes the last entry of the log, the revoke of
	// that lease, on the copy of one member.
	"tryrevoke": (*scenario).tryRevoke,
	"expire":    (*scenario).expire,
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
	_, err := pb.NewLeaseClient(s.c.Client(i).ActiveConnection()).LeaseGrant(ctx,
		&pb.LeaseGrantRequest{ID: id, TTL: int64(s.number(args, 2, 60))})
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
	_, err := s.c.Client(s.node(args[0])).Txn(ctx).Then(clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut(args[1], "x")},
		nil)).Commit()
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

// tryRevoke revokes a lease and takes a refusal for an answer.
func (s *scenario) tryRevoke(args []string) {
	ctx, cancel := s.context()
	defer cancel()
	_, err := pb.NewLeaseClient(s.c.Client(s.node(args[0])).ActiveConnection()).LeaseRevoke(ctx,
		&pb.LeaseRevokeRequest{ID: s.leaseID(args[1])})
	s.Logf("%s: %v", s.line, err)
}

// expire executes on the copy of a member what a server of 3.2 does at the last entry of the log, the revoke of a
// lease: its keys are deleted in one revision, the lease is gone and the index is that of the entry.
func (s *scenario) expire(args []string) {
	id := s.leaseID(args[1])
	inspected, err := compare.Inspect(s.Context(), evidence.Spec{Where: s.dirs[args[0]]}, compare.Options{})
	s.must(err)
	db := s.openDB(args[0])
	s.must(db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte("key"))
		live, last := map[string]int64{}, uint64(0)
		err := b.ForEach(func(k, v []byte) error {
			var kv mvccpb.KeyValue
			if err := kv.Unmarshal(v); err != nil {
				return err
			}
			last = binary.BigEndian.Uint64(k)
			if live[string(kv.Key)] = kv.Lease; len(k) == 18 {
				delete(live, string(kv.Key))
			}
			return nil
		})
		if err != nil {
			return err
		}
		sub := uint64(0)
		for _, key := range slices.Sorted(maps.Keys(live)) {
			if live[key] != id {
				continue
			}
			at := append(binary.BigEndian.AppendUint64(append(binary.BigEndian.AppendUint64(nil, last+1), '_'), sub),
				't')
			val, err := (&mvccpb.KeyValue{Key: []byte(key)}).Marshal()
			if err != nil {
				return err
			}
			if err := b.Put(at, val); err != nil {
				return err
			}
			sub++
		}
		if err := tx.Bucket([]byte("lease")).Delete(binary.BigEndian.AppendUint64(nil, uint64(id))); err != nil {
			return err
		}
		return tx.Bucket([]byte("meta")).Put([]byte("consistent_index"),
			binary.BigEndian.AppendUint64(nil, inspected.Members[0].WAL.LastIndex))
	}))
	s.must(db.Close())
}
