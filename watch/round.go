package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/shell"
)

// between is the time between the two answers of a round.
const between = 200 * time.Millisecond

// asker makes rounds.
type asker struct {
	members []Member
	timeout time.Duration
	names   map[uint64]string
	pause   time.Duration
	// took is how long the last round that read auth buckets took for them, connected how often each member had been
	// connected to by then.
	took      time.Duration
	connected []int64
}

// connections returns how often each member was connected to.
func (a *asker) connections() (out []int64) {
	for _, m := range a.members {
		out = append(out, m.Connections())
	}
	return out
}

// each asks all members at the same time. A member that does not answer in time does not delay the others.
func (a *asker) each(ctx context.Context, seen []Seen, f func(ctx context.Context, m Member, s *Seen) error) {
	var wg sync.WaitGroup
	for i := range a.members {
		if seen[i].Err != nil {
			continue
		}
		wg.Go(func() {
			ask, cancel := context.WithTimeout(ctx, a.timeout)
			defer cancel()
			if err := f(ask, a.members[i], &seen[i]); err != nil {
				seen[i].Err = a.members[i].Because(ctx, err)
			}
		})
	}
	wg.Wait()
}

// round asks all members. hash selects whether content is compared, buckets whether the auth bucket of members before
// 3.5 is read.
func (a *asker) round(ctx context.Context, now time.Time, hash, buckets bool) Round {
	r := Round{At: now, Members: make([]Seen, len(a.members))}
	for i, m := range a.members {
		r.Members[i].Endpoint = shell.OneLine(m.Endpoint())
	}
	a.each(ctx, r.Members, func(ctx context.Context, m Member, s *Seen) (err error) {
		s.First, err = m.Status(ctx)
		return err
	})
	wait(ctx, a.pause)
	a.each(ctx, r.Members, func(ctx context.Context, m Member, s *Seen) (err error) {
		s.Second, err = m.Status(ctx)
		if err == nil && s.Second.ID != s.First.ID {
			err = fmt.Errorf("%s is the address of several members", m.Endpoint())
		}
		return err
	})
	oncePerMember(r.Members)
	a.name(ctx, r.Members)
	r.Unasked = a.unasked(r.Members)
	a.small(ctx, r.Members, buckets)
	if hash {
		a.content(ctx, &r)
	}
	return r
}

// oncePerMember leaves out what would be compared with itself or with another cluster: further addresses of a member,
// and members of another cluster than most have, or than the first has.
func oncePerMember(seen []Seen) {
	most, count := uint64(0), map[uint64]int{}
	for i := range seen {
		if seen[i].Err == nil {
			count[seen[i].First.Cluster]++
		}
	}
	for i := range seen {
		if c := seen[i].First.Cluster; seen[i].Err == nil && count[c] > count[most] {
			most = c
		}
	}
	at := map[uint64]string{}
	for i := range seen {
		s := &seen[i]
		switch first := at[s.First.ID]; {
		case s.Err != nil:
		case s.First.Cluster != most:
			s.Err = fmt.Errorf("it is a member of cluster %x, and the watch compares cluster %x", s.First.Cluster, most)
		case first != "":
			s.Err = fmt.Errorf("member %x answers here and at %s: name each member once", s.First.ID, first)
		default:
			at[s.First.ID] = s.Endpoint
		}
	}
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// name sets the names of members, as the first that answers lists them, and each that is not among those. A member
// without a known name gets its endpoint.
func (a *asker) name(ctx context.Context, seen []Seen) {
	asked := false
	for i := range seen {
		if seen[i].Err != nil || asked && a.names[seen[i].First.ID] != "" {
			continue
		}
		asked = true
		ctx, cancel := context.WithTimeout(ctx, a.timeout)
		if names, err := a.members[i].Names(ctx); err == nil {
			for id, n := range names { // what a member is called reaches labels, logs and the hook
				names[id] = shell.OneLine(n)
			}
			a.names = names
		}
		cancel()
	}
	for i := range seen {
		if seen[i].Name = a.names[seen[i].First.ID]; seen[i].Name == "" {
			seen[i].Name = seen[i].Endpoint
		}
	}
}

// unasked returns the members that are listed and did not answer here, if all that are asked answered.
func (a *asker) unasked(seen []Seen) (out []string) {
	rest := maps.Clone(a.names)
	for i := range seen {
		if seen[i].Err != nil {
			return nil
		}
		delete(rest, seen[i].First.ID)
	}
	for id, name := range rest {
		out = append(out, cmp.Or(name, fmt.Sprintf("%x", id)))
	}
	slices.Sort(out)
	return out
}

// small asks for auth and alarms. A member that refuses them, for lack of permission, is still compared in everything
// else.
func (a *asker) small(ctx context.Context, seen []Seen, buckets bool) {
	begun, connected := time.Now(), a.connections()
	a.each(ctx, seen, func(ctx context.Context, m Member, s *Seen) error {
		var auth Auth
		var err error
		version, _ := release.Parse(s.First.Version) // unknown: its database is asked
		switch {
		case s.First.Learner:
			return nil
		case version.Has(release.AuthStatusRPC).Certain() && s.First.Leader == 0:
			return nil // the leader has to agree to it, so an answer would take until the time limit
		case version.Has(release.AuthStatusRPC).Certain():
			auth, err = m.AuthStatus(ctx)
		case buckets:
			auth, err = m.AuthBucket(ctx)
		default:
			return nil
		}
		if err == nil {
			s.Auth = &auth
		}
		return nil
	})
	if buckets {
		a.took, a.connected = time.Since(begun), connected
	}
	a.alarms(ctx, seen)
}

// alarms takes the alarms from what the members say of themselves. Members of 3.3 say none: one that knows a leader is
// asked.
func (a *asker) alarms(ctx context.Context, seen []Seen) {
	on, asked := map[uint64][]string{}, false
	add := func(member uint64, alarm string) {
		if !slices.Contains(on[member], alarm) {
			on[member] = append(on[member], alarm)
		}
	}
	for i := range seen {
		s := &seen[i]
		if s.Err != nil {
			continue
		}
		for _, e := range s.Second.Errors {
			if m := alarmText.FindStringSubmatch(e); m != nil {
				if id, err := strconv.ParseUint(m[1], 10, 64); err == nil {
					add(id, m[2])
				}
			}
		}
		version, _ := release.Parse(s.First.Version)
		if asked || s.First.Learner || s.First.Leader == 0 || !version.Has(release.AlarmsInStatus).Excluded() {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, a.timeout)
		if list, err := a.members[i].Alarms(ctx); err == nil {
			asked = true
			for id, alarms := range list {
				for _, alarm := range alarms {
					add(id, alarm)
				}
			}
		}
		cancel()
	}
	for i := range seen {
		seen[i].Alarms = on[seen[i].First.ID]
		slices.Sort(seen[i].Alarms)
	}
}

// alarmText is an alarm among the errors of a status: a protobuf message as text, whose blanks differ by release.
var alarmText = regexp.MustCompile(`^memberID:(\d+)\s+alarm:(\w+)\s*$`)

// content compares hashes and key counts at one revision that all members have. It leaves out a member that lags so far
// that the others have compacted its revision.
func (a *asker) content(ctx context.Context, r *Round) {
	out := map[int]bool{}
	for range len(r.Members) {
		r.Revision = common(r.Members, out)
		if r.Revision <= 0 {
			return
		}
		var mu sync.Mutex
		compacted := false
		a.each(ctx, r.Members, func(ctx context.Context, m Member, s *Seen) error {
			s.Hash, s.Keys, s.NotHashed = nil, nil, nil
			if s.First.Revision < r.Revision || s.First.Learner {
				return nil // left out; a learner gives no hash
			}
			h, err := m.HashKV(ctx, r.Revision)
			if isCompacted(err) {
				mu.Lock()
				compacted = true
				mu.Unlock()
				return nil
			}
			if err != nil {
				s.NotHashed = err // no right to, for instance: not compared
				return nil
			}
			s.Hash = &h
			if n, err := m.Keys(ctx, r.Revision); err == nil {
				s.Keys = &n
			}
			return nil
		})
		if !compacted {
			return
		}
		for i := range r.Members { // the member that lags
			if r.Members[i].Err == nil && r.Members[i].First.Revision == r.Revision {
				out[i] = true
			}
		}
	}
}

// common returns the lowest revision of the members that are not left out.
func common(seen []Seen, out map[int]bool) (rev int64) {
	for i := range seen {
		if seen[i].Err == nil && !out[i] && !seen[i].First.Learner && (rev == 0 || seen[i].First.Revision < rev) {
			rev = seen[i].First.Revision
		}
	}
	return rev
}

func isCompacted(err error) bool {
	return err != nil && (errors.Is(err, rpctypes.ErrCompacted) ||
		strings.Contains(err.Error(), rpctypes.ErrorDesc(rpctypes.ErrGRPCCompacted)))
}

// answered counts the members that answered.
func (r *Round) answered() (n int) {
	for i := range r.Members {
		if r.Members[i].Err == nil {
			n++
		}
	}
	return n
}

// compared reports whether the content of every member was compared with that of another one.
func (r *Round) compared() bool {
	if len(r.Unasked) > 0 {
		return false
	}
	for i := range r.Members {
		if r.Members[i].Err != nil || r.NotCompared(i) != "" {
			return false
		}
	}
	return true
}

// NotCompared says why the content of a member that answered was not compared with that of another one; "" if it was,
// or if it is a learner, which gives no hash.
func (r *Round) NotCompared(i int) string {
	s := &r.Members[i]
	switch {
	case s.Err != nil || s.First.Learner:
		return ""
	case s.NotHashed != nil:
		return s.NotHashed.Error()
	case s.Hash == nil:
		return "it gave no hash at this revision"
	}
	if r.answered() < 2 {
		return "no other member answered"
	}
	for j := range r.Members {
		if o := &r.Members[j]; j != i && o.Err == nil && o.Hash != nil && o.Hash.Compact == s.Hash.Compact &&
			(o.First.Version == s.First.Version || o.Hash.Hash == s.Hash.Hash) {
			return ""
		}
	}
	if s.Hash.Compact < 0 {
		return fmt.Sprintf("no other member with a hash has version %s and was never compacted", s.First.Version)
	}
	return fmt.Sprintf("no other member with a hash has version %s and is compacted to revision %d", s.First.Version,
		s.Hash.Compact)
}
