package repair

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// preflight holds the running cluster against the plan and tells what an operator should know. Nothing was changed yet, unless an earlier run
// is carried on.
func (f *field) preflight(ctx context.Context, resumed bool, room func(string) (int64, bool)) error {
	if err := f.locate(ctx); err != nil {
		return err
	}
	if err := f.check(ctx, resumed); err != nil {
		return err
	}
	if err := f.isRoot(ctx); err != nil {
		return err
	}
	if !resumed {
		if err := f.room(ctx, room); err != nil {
			return err
		}
	}
	notes, err := f.moved(ctx)
	if err != nil {
		return err
	}
	f.r.out.Notes = append(f.r.out.Notes, notes...)
	for _, n := range notes {
		f.o.Notice(n)
	}
	if !f.o.prompted() || resumed {
		return nil
	}
	text := append([]string{fmt.Sprintf("repair of cluster %s: keep %s, %s", f.r.plan.Cluster.ID, f.r.plan.Best.Name, f.r.plan.Why)}, "nothing was changed yet; begin?")
	if err := f.o.Prompt(ctx, text); errors.Is(err, ErrStopped) {
		return refusedf("the same command asks again", "%v before the first step", err)
	} else if err != nil {
		return err
	}
	return nil
}

// check holds members and state of the running cluster against the plan.
func (f *field) check(ctx context.Context, resumed bool) error {
	p := f.r.plan
	list, err := f.r.list(ctx)
	if err != nil {
		return refusedf("look at --endpoints and the credentials; the cluster needs a leader", "the running cluster does not tell its members: %v", err)
	}
	goal, err := f.r.goal(ctx)
	if err != nil {
		return err
	}
	const hint = "this is another cluster, or it changed since its data dirs were copied: copy again and plan again"
	if id := goal.Header.GetClusterId(); id != uint64(p.Cluster.ID) {
		return refusedf(hint, "the running cluster is %x, the plan is for %s", id, p.Cluster.ID)
	}
	if rev := goal.Header.GetRevision(); rev < p.Best.Revision {
		return refusedf(hint, "%s stands at revision %d, in the plan at %d", p.Best.Name, rev, p.Best.Revision)
	}
	return f.sameMembers(list, resumed, hint)
}

func (f *field) sameMembers(list []*etcdserverpb.Member, resumed bool, hint string) error {
	p := f.r.plan
	known := map[uint64]bool{}
	for i := range p.Members {
		m := &p.Members[i]
		known[uint64(m.ID)], known[f.r.idOf(m)] = true, true
		listed := find(list, uint64(m.ID)) != nil || find(list, f.r.idOf(m)) != nil
		if !resumed && !listed && m.Action != Retire && m.Action != Join && !zombie(m) {
			return refusedf(hint, "member %s (%s) of the plan is not listed", m.Name, m.ID)
		}
	}
	for _, m := range list {
		mine := resumed && slices.ContainsFunc(p.Members, func(pm Member) bool { return byPeerURL(list, pm.PeerURLs) == m })
		if !known[m.GetID()] && !mine {
			return refusedf(hint, "the running cluster has a member %s that the plan does not know", dumplog.ID(m.GetID()))
		}
	}
	return nil
}

// isRoot asks for something that only root may see, so that credentials that do not suffice are found before the first step. The answer
// is thrown away.
func (f *field) isRoot(ctx context.Context) error {
	err := f.r.until(ctx, f.r.limits.step, "list of users", func(ctx context.Context) error {
		return f.r.ask(ctx, f.r.best(), func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.UserList(ctx)
			return err
		})
	})
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	return refusedf("--user of a user with role root and its password, or --cert and --key with CN=root", "the credentials do not allow the steps of a repair: %v", err)
}

// room wants space for the snapshots that are taken, and their names free.
func (f *field) room(ctx context.Context, room func(string) (int64, bool)) error {
	var need int64
	for i := range f.r.steps {
		s := &f.r.steps[i]
		if s.Kind != StepBackup && (s.Kind != StepSave || f.o.SkipSaves) {
			continue
		}
		m := f.r.of(s)
		path := f.r.backup
		if s.Kind == StepSave {
			path = savePath(f.r.backup, m)
		}
		if _, err := os.Lstat(path); err == nil {
			return refusedf("move it away, or name another file with --backup", "%s exists; nothing is overwritten", path)
		}
		if st, err := f.answers(ctx, m); err == nil {
			need += st.DbSize
		}
	}
	err := enough(f.r.backup, need, room)
	var refused *RefusedError
	if errors.As(err, &refused) {
		refused.Hint = "free some, or name a file elsewhere with --backup"
	}
	return err
}

// locate finds out which endpoint is whose.
func (f *field) locate(ctx context.Context) error {
	byID := map[uint64]string{}
	for i := range f.r.plan.Members {
		m := &f.r.plan.Members[i]
		byID[uint64(m.ID)], byID[f.r.idOf(m)] = m.Name, m.Name
	}
	var errs []error
	for _, e := range f.o.Endpoints {
		id, err := f.who(ctx, e)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", e, err))
		} else if name := byID[id]; name != "" {
			f.endpoints[name] = e
		}
	}
	if len(f.endpoints) > 0 {
		return f.assign()
	}
	why := "they belong to members that the plan does not know"
	if len(errs) > 0 {
		why = strings.ReplaceAll(errors.Join(errs...).Error(), "\n", "; ")
	}
	return refusedf("look at --endpoints and the credentials", "no endpoint answers as a member of the plan: %s", why)
}

// assign finds the endpoints of members that do not answer now: what an earlier process found, what they advertise, or the one that is left. What
// is known is kept in the journal, for processes that find a member down.
func (f *field) assign() error {
	free := slices.Clone(f.o.Endpoints)
	for _, e := range f.endpoints {
		free = slices.DeleteFunc(free, func(x string) bool { return x == e })
	}
	var without []*Member
	for i := range f.r.plan.Members {
		m := &f.r.plan.Members[i]
		if f.endpoints[m.Name] != "" {
			continue
		}
		i := slices.IndexFunc(free, func(e string) bool { return e == f.r.j.value("endpoint:"+m.Name) || slices.Contains(m.ClientURLs, e) })
		if i < 0 {
			without = append(without, m)
			continue
		}
		f.endpoints[m.Name] = free[i]
		free = slices.Delete(free, i, i+1)
	}
	if len(free) == 1 && len(without) == 1 {
		f.endpoints[without[0].Name] = free[0]
	}
	for _, name := range slices.Sorted(maps.Keys(f.endpoints)) {
		if e := f.endpoints[name]; f.r.j.value("endpoint:"+name) != e {
			if err := f.r.note("", "endpoint:"+name, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// who asks an endpoint for the ID of its member.
func (f *field) who(ctx context.Context, endpoint string) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, ask)
	defer cancel()
	if !listens(ctx, endpoint) {
		return 0, errSilent
	}
	c, err := f.dial(endpoint)
	if err != nil {
		return 0, err
	}
	st, err := c.Status(ctx, endpoint)
	if err != nil {
		return 0, err
	}
	return st.Header.GetMemberId(), nil
}
