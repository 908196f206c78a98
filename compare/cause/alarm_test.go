package cause_test

import (
	"testing"

	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

func raise(member uint64, typ pb.AlarmType) *pb.InternalRaftRequest {
	return &pb.InternalRaftRequest{Alarm: &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, MemberID: member,
		Alarm: typ}}
}

func disarm(member uint64, typ pb.AlarmType) *pb.InternalRaftRequest {
	return &pb.InternalRaftRequest{Alarm: &pb.AlarmRequest{Action: pb.AlarmRequest_DEACTIVATE, MemberID: member,
		Alarm: typ}}
}

// TestNoSpaceAlarm: NOSPACE leaves the verdict healthy; raised for a member that is gone, it is an orphan.
func TestNoSpaceAlarm(t *testing.T) {
	script := func(member uint64) *clustertest.Script {
		s := newScript("3.6.0")
		s.Add(as("", 0, put("/a", "1", 0)))
		s.Add(as("", 1, raise(member, pb.AlarmType_NOSPACE)))
		return s
	}
	s := script(newScript("3.6.0").ID(1))
	told{class: "healthy", causes: []string{"nospace-alarm"}, absent: []string{"orphan-alarm"},
		violated: []string{"M06"}, holds: []string{"K08", "K09"}, best: all3}.check(t, diagnoseScript(t, s))
	told{class: "healthy", causes: []string{"orphan-alarm"}, absent: []string{"nospace-alarm"},
		violated: []string{"M06", "K08"}, holds: []string{"K09"},
		best: all3}.check(t, diagnoseScript(t, script(0xdead)))
	s.Add(as("", 1, disarm(s.ID(1), pb.AlarmType_NOSPACE)))
	told{class: "healthy", absent: []string{"nospace-alarm", "orphan-alarm"}, holds: []string{"M06", "K08"}}.check(t,
		diagnoseScript(t, s))
}

// TestCorruptAlarm: whether CORRUPT is true is decided by the contents.
func TestCorruptAlarm(t *testing.T) {
	const misleading, resumed = "corrupt-alarm-misleading", "compaction-hash-after-resume"
	script := func(version string, member uint64, compact, restart bool) *clustertest.Script {
		s := newScript(version)
		for i := range 6 {
			s.Add(as("", i%3, put("/a", string(rune('0'+i)), 0)))
		}
		s.Add(as("", 0, put("/b", "right", 0)))
		if compact {
			s.Add(as("", 0, &pb.InternalRaftRequest{Compaction: &pb.CompactionRequest{Revision: 4}}))
		}
		if restart {
			s.Start(1)
		}
		s.Add(as("", 0, put("/c", "1", 0)))
		s.Add(as("", 0, raise(member, pb.AlarmType_CORRUPT)))
		return s
	}
	node2 := newScript("3.5.0").ID(1)
	wrong := editDB(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("key")).ForEach(func(k, v []byte) error {
			if i := len(v) - 5; i > 0 && string(v[i:]) == "right" {
				b := append([]byte{}, v...)
				b[i] = 'l'
				return tx.Bucket([]byte("key")).Put(append([]byte{}, k...), b)
			}
			return nil
		})
	})
	t.Run("equal contents", func(t *testing.T) {
		told{class: "alarm", cause: misleading, certainty: "strong", absent: []string{resumed},
			violated: []string{"M06", "K09"},
			holds:    []string{"K01", "K03", "K08"}}.check(t, diagnoseScript(t, script("3.5.0", node2, true, false)))
	})
	t.Run("resumed compaction", func(t *testing.T) {
		told{class: "alarm", cause: resumed, certainty: "strong", causes: []string{misleading},
			violated: []string{"K09"}}.check(t, diagnoseScript(t, script("3.5.0", node2, true, true)))
	})
	t.Run("resumed on a fixed line", func(t *testing.T) {
		told{class: "alarm", cause: misleading, absent: []string{resumed}}.check(t,
			diagnoseScript(t, script("3.6.0", node2, true, true)))
	})
	t.Run("the named one is wrong", func(t *testing.T) {
		told{class: "data-divergence", cause: "value-bytes-altered", absent: []string{misleading, resumed},
			violated: []string{"M06", "K01", "K03"}, holds: []string{"K09"}, best: []string{"node1", "node3"}}.
			check(t, diagnoseScript(t, script("3.5.0", node2, true, true), nil, wrong))
	})
	t.Run("another is wrong", func(t *testing.T) {
		told{class: "data-divergence", cause: "value-bytes-altered", causes: []string{misleading},
			absent: []string{resumed}, violated: []string{"K09"}, best: []string{"node2", "node3"}}.
			check(t, diagnoseScript(t, script("3.5.0", node2, false, false), wrong))
	})
	t.Run("nobody named", func(t *testing.T) {
		told{class: "data-divergence", cause: "value-bytes-altered", absent: []string{misleading, "orphan-alarm"},
			holds: []string{"K08", "K09"}}.check(t, diagnoseScript(t, script("3.5.0", 0, false, false), wrong))
	})
	t.Run("a member that is gone", func(t *testing.T) {
		told{class: "alarm", causes: []string{misleading, "orphan-alarm"}, cause: misleading,
			violated: []string{"K08", "K09"}}.check(t, diagnoseScript(t, script("3.6.0", 0xdead, false, false)))
	})
}
