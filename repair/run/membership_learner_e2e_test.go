//go:build e2e

package run

import (
	"context"
	"encoding/json"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestE2ERepairLearners: learners that do not get on, and flags that are wrong.
func TestE2ERepairLearners(t *testing.T) {
	runTroubles(t, []trouble{
		{
			name: "learner that never started", lines: []string{"3.4.23", "3.5.35", "3.6.16"}, live: []string{"3.6.16"},
			spoil: func(_ *testing.T, s *spoiled) []string {
				s.vacant(0, asLearner)
				s.put(0, 3)
				s.c.WaitEqual()
				return s.c.Sources()
			},
			want: wanted{class: "membership", cause: "stuck-learner", mode: plan.Live,
				acts: map[string]plan.Action{"node1": plan.Best, "node2": plan.Keep, "node3": plan.Keep,
					"nobody": plan.Remove}},
		},
		{
			name: "learner that lags", lines: []string{"3.5.35", "3.6.16"}, live: []string{"3.5.35"},
			spoil: func(_ *testing.T, s *spoiled) []string {
				s.c.Stop(s.c.Add(true))
				s.put(0, 60)
				s.c.WaitEqual()
				return s.c.Sources()
			},
			want: wanted{acts: map[string]plan.Action{"node1": plan.Best, "node2": plan.Keep, "node3": plan.Keep,
				"node4": plan.Start}},
		},
		{
			name: "promotion not persisted", lines: []string{"3.5.35", "3.6.16"},
			spoil: func(t *testing.T, s *spoiled) []string {
				i := s.c.Add(true)
				s.promote(i)
				s.put(0, 5)
				s.c.WaitEqual()
				dirs := s.c.Sources()
				for _, sp := range sourcesOf(t, dirs) {
					editMembers(t, sp.Where, func(row map[string]any) {
						if row["name"] == "node4" {
							row["isLearner"] = true
						}
					})
				}
				return dirs
			},
			want: wanted{class: "membership", cause: "learner-promotion-not-persisted", mode: plan.Live,
				acts: map[string]plan.Action{"node1": plan.Best, "node2": plan.Restart, "node3": plan.Restart,
					"node4": plan.Restart}},
		},
	})
}

// promote makes member i a voter as soon as it is ready.
func (s *spoiled) promote(i int) {
	s.Helper()
	s.c.WaitUntil("the learner is ready", func(ctx context.Context) error {
		list, err := s.c.Client(0).MemberList(ctx)
		if err != nil {
			return err
		}
		m := byPeerURL(list.Members, []string{s.c.PeerURL(i)})
		if m == nil || !m.GetIsLearner() {
			return nil
		}
		_, err = s.c.Client(0).MemberPromote(ctx, m.GetID())
		return err
	})
}

// editMembers changes the rows of bucket members, as releases with a defect left them.
func editMembers(t *testing.T, dir string, edit func(row map[string]any)) {
	t.Helper()
	editDB(t, dir, func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte("members"))
		rows := map[string][]byte{}
		if err := b.ForEach(func(k, v []byte) error {
			var row map[string]any
			if err := json.Unmarshal(v, &row); err != nil {
				return err
			}
			id := row["id"]
			edit(row)
			row["id"] = json.RawMessage(jsonNumber(id, v))
			out, err := json.Marshal(row)
			rows[string(k)] = out
			return err
		}); err != nil {
			return err
		}
		for k, v := range rows {
			if err := b.Put([]byte(k), v); err != nil {
				return err
			}
		}
		return nil
	})
}

// jsonNumber keeps an ID as it was written: a float would round it.
func jsonNumber(_ any, row []byte) []byte {
	var v struct {
		ID json.Number `json:"id"`
	}
	_ = json.Unmarshal(row, &v)
	return []byte(v.ID)
}
