package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
}

// each asks all members at the same time. A member that does not answer in time does not delay the others.
func (a *asker) each(ctx context.Context, seen []Seen, f func(ctx context.Context, m Member, s *Seen) error) {
	var wg sync.WaitGroup
	for i := range a.members {
		if seen[i].Err != nil {
			continue
		}
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, a.timeout)
			defer cancel()
			if err := f(ctx, a.members[i], &seen[i]); err != nil {
				seen[i].Err = err
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
	a.name(ctx, r.Members)
	a.small(ctx, r.Members, buckets)
	if hash {
		a.content(ctx, &r)
	}
	return r
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// name sets the names of members. A member without a known name gets its endpoint.
func (a *asker) name(ctx context.Context, seen []Seen) {
	for i := range seen {
		if seen[i].Err != nil || a.names[seen[i].First.ID] != "" {
			continue
		}
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

// small asks for auth and alarms. A member that refuses them, for lack of permission, is still compared in everything
// else.
func (a *asker) small(ctx context.Context, seen []Seen, buckets bool) {
	a.each(ctx, seen, func(ctx context.Context, m Member, s *Seen) error {
		var auth Auth
		var err error
		version, _ := release.Parse(s.First.Version) // unknown: its database is asked
		switch {
		case s.First.Learner:
			return nil
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
	for i := range seen {
		if seen[i].Err != nil || seen[i].First.Learner {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, a.timeout)
		alarms, err := a.members[i].Alarms(ctx)
		cancel()
		if err == nil {
			for j := range seen {
				seen[j].Alarms = alarms[seen[j].First.ID]
			}
			return
		}
	}
}

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
	return !slices.ContainsFunc(r.Members, func(s Seen) bool {
		return s.Err != nil || s.Hash == nil &&
			!s.First.Learner
	})
}
