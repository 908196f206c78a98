package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/shell"
)

// doDisarm disarms CORRUPT, one alarm at a time. It never clears NOSPACE.
func doDisarm(ctx context.Context, r *runner, _ *plan.Step) (string, error) {
	var names []string
	err := r.until(ctx, r.limits.step, "alarm disarm", func(ctx context.Context) error {
		return r.ask(ctx, r.best(), func(ctx context.Context, c *clientv3.Client) error {
			l, err := c.AlarmList(ctx)
			if err != nil {
				return err
			}
			for _, a := range l.Alarms {
				if a.GetAlarm() != etcdserverpb.AlarmType_CORRUPT {
					continue
				}
				if _, err := c.AlarmDisarm(ctx, (*clientv3.AlarmMember)(a)); err != nil {
					return err
				}
				names = append(names, hexID(a.GetMemberID()))
			}
			return nil
		})
	})
	if len(names) == 0 {
		return "no CORRUPT alarm is raised", err
	}
	return "disarmed CORRUPT of " + strings.Join(names, ", "), err
}

// doVerify is the online part of the proof; the offline part compares the data dirs.
func doVerify(ctx context.Context, r *runner, _ *plan.Step) (string, error) {
	members := r.present()
	p := &proof{cluster: r.cluster, write: r.write}
	for _, check := range []struct {
		what string
		run  func(context.Context, []*plan.Member) (string, error)
	}{
		{"the member list is the planned one, without learners", p.listIsPlanned},
		{"no CORRUPT alarm is raised", p.noAlarm},
		{"linearizable reads and proposals work through every member", onVoters(p.worksThrough)},
		{"HashKV is equal on all members at one revision", onVoters(r.sameHash)},
		{"the auth revision is equal on all members", onVoters(p.sameAuth)},
		{"learners have applied what the leader had", p.learnersFollow},
	} {
		detail, err := check.run(ctx, members)
		outcome := holds
		var open *openError
		switch {
		case errors.Is(err, errNothingToCheck):
			continue
		case errors.As(err, &open):
			outcome, detail = notChecked, open.why
		case err != nil:
			r.out.prove(check.what, violated, err.Error())
			return "", fmt.Errorf("%s: %w", check.what, err)
		}
		r.out.prove(check.what, outcome, detail)
	}
	return "", r.noteVersions(ctx, members)
}

// proof asks the running cluster for what the repair promises.
type proof struct {
	*cluster
	// write makes it write a key through each member, not only propose; for copies.
	write bool
}

// errNothingToCheck ends a proof without members.
var errNothingToCheck = errors.New("there is no such member")

// openError ends a proof that could not be made.
type openError struct{ why string }

// Error returns why the proof could not be made.
func (e *openError) Error() string { return e.why }

// onVoters leaves learners out: they answer Status and serializable reads only.
func onVoters(f func(context.Context, []*plan.Member) (string, error)) func(context.Context, []*plan.Member) (string,
	error) {
	return func(ctx context.Context, members []*plan.Member) (string, error) {
		return f(ctx, slices.DeleteFunc(slices.Clone(members), func(m *plan.Member) bool { return m.Learner }))
	}
}

// learnersFollow waits until every remaining learner has applied what the best member has now, and holds as many keys.
func (p *proof) learnersFollow(ctx context.Context, members []*plan.Member) (string, error) {
	var names []string
	for _, m := range members {
		if !m.Learner {
			continue
		}
		goal, err := p.goal(ctx)
		if err != nil {
			return "", err
		}
		err = p.until(ctx, p.limits.step, "learner "+m.Name+" follows", func(ctx context.Context) error {
			st, err := p.status(ctx, m)
			if err == nil && st.RaftAppliedIndex < goal.RaftAppliedIndex {
				err = fmt.Errorf("applied %d of %d", st.RaftAppliedIndex, goal.RaftAppliedIndex)
			}
			return err
		})
		if err != nil {
			return "", err
		}
		if err := p.sameCount(ctx, m, goal.Header.GetRevision()); err != nil {
			return "", err
		}
		names = append(names, m.Name)
	}
	if len(names) == 0 {
		return "", errNothingToCheck
	}
	return strings.Join(names, ", "), nil
}

func (p *proof) listIsPlanned(ctx context.Context, members []*plan.Member) (string, error) {
	list, err := p.list(ctx)
	if err != nil {
		return "", err
	}
	var want []uint64
	for _, m := range members {
		want = append(want, p.idOf(m))
	}
	for i := range p.plan.Members {
		m := &p.plan.Members[i]
		removedLater := p.clones && m.Action == plan.Remove && !m.Zombie() // once the clones run
		// It runs, or will, and is not in the sandbox.
		elsewhere := p.sandbox && m.Action == plan.Keep && m.Source == "" || p.some != nil &&
			!slices.Contains(p.some, m)
		inBucketOnly := m.Zombie() && !p.plan.Cluster.Has(release.MembersFromDB).Certain() && !p.plan.Restarts()
		if (removedLater || elsewhere || inBucketOnly) && find(list, uint64(m.ID)) != nil {
			want = append(want, uint64(m.ID))
			if elsewhere {
				members = append(slices.Clone(members), m)
			}
		}
	}
	for _, m := range list {
		switch {
		case m.GetIsLearner() && !slices.ContainsFunc(members,
			func(o *plan.Member) bool { return o.Learner && p.idOf(o) == m.GetID() }):
			return "", fmt.Errorf("%x is a learner; %s", m.GetID(), p.ifUnwanted(m))
		case !slices.Contains(want, m.GetID()):
			return "", fmt.Errorf("%x is not a member of the plan; %s", m.GetID(), p.ifUnwanted(m))
		}
	}
	if len(list) != len(want) {
		return "", fmt.Errorf("%d members are listed, %d are planned%s", len(list), len(want), p.notListed(list, want))
	}
	return fmt.Sprintf("%d members", len(list)), nil
}

// notListed names planned members that are missing in the member list.
func (p *proof) notListed(list []*etcdserverpb.Member, want []uint64) string {
	var names []string
	for _, id := range want {
		if find(list, id) == nil {
			names = append(names, fmt.Sprintf("%s (%x)", p.nameOf(&etcdserverpb.Member{ID: id}), id))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ": " + strings.Join(names, ", ") + " was removed meanwhile; add it again as a new, empty member, or plan " +
		"again from new copies"
}

func (p *proof) noAlarm(ctx context.Context, members []*plan.Member) (string, error) {
	var of []string
	err := p.until(ctx, p.limits.step, "alarm list", func(ctx context.Context) error {
		return p.ask(ctx, p.queryMember(), func(ctx context.Context, c *clientv3.Client) error {
			l, err := c.AlarmList(ctx)
			if err != nil {
				return err
			}
			of = nil
			for _, a := range l.Alarms {
				if a.GetAlarm() == etcdserverpb.AlarmType_CORRUPT {
					of = append(of, hexID(a.GetMemberID()))
				}
			}
			return nil
		})
	})
	if err != nil || len(of) == 0 {
		return "", err
	}
	raised := fmt.Errorf("alarm CORRUPT of member %s is raised", strings.Join(of, ", "))
	if p.sandbox {
		return "", raised
	}
	detail, err := onVoters(p.sameHash)(ctx, members)
	if err != nil {
		return "", fmt.Errorf("%w, and the members still differ: %w", raised, err)
	}
	return "", fmt.Errorf("%w: the run leaves one that is raised after the plan was made. All members hold the same "+
		"now (%s): clear it with %s (which clears NOSPACE too), and run the same command again", raised, detail,
		p.etcdctl(shell.Format("alarm disarm")))
}

// worksThrough proposes a transaction without effect through each member (its compare never holds), and makes a
// linearizable read. On copies it also writes a key, reads it through the next member and deletes it.
//
// A cluster with a NOSPACE alarm accepts no writes, and this program does not clear it. There each member proposes an
// alarm list instead.
func (p *proof) worksThrough(ctx context.Context, members []*plan.Member) (string, error) {
	full, err := p.noSpace(ctx)
	if err != nil {
		return "", err
	}
	for i, m := range members {
		if err := p.linearizable(ctx, m); err != nil {
			return "", err
		}
		propose := p.propose
		if full {
			propose = p.proposeNothing
		}
		if err := propose(ctx, m); err != nil {
			return "", err
		}
		if p.write && !full {
			if err := p.writeAndRead(ctx, m, members[(i+1)%len(members)]); err != nil {
				return "", err
			}
		}
	}
	detail := fmt.Sprintf("%d members", len(members))
	if full {
		detail += "; alarm NOSPACE is raised, so writes were not tried"
		p.notice("alarm NOSPACE is raised, and this repair leaves it: the cluster refuses writes until it is " +
			"compacted and defragmented, and etcdctl alarm disarm was run")
	}
	return detail, nil
}

// noSpace reports whether alarm NOSPACE is raised.
func (p *proof) noSpace(ctx context.Context) (full bool, err error) {
	err = p.until(ctx, p.limits.step, "alarm list", func(ctx context.Context) error {
		return p.ask(ctx, p.queryMember(), func(ctx context.Context, c *clientv3.Client) error {
			l, err := c.AlarmList(ctx)
			full = err == nil && slices.ContainsFunc(l.Alarms,
				func(a *etcdserverpb.AlarmMember) bool { return a.GetAlarm() == etcdserverpb.AlarmType_NOSPACE })
			return err
		})
	})
	return full, err
}

// proposeNothing proposes an alarm list through a member.
func (p *proof) proposeNothing(ctx context.Context, m *plan.Member) error {
	return p.until(ctx, p.limits.step, "proposal through "+m.Name, func(ctx context.Context) error {
		return p.ask(ctx, m, func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.AlarmList(ctx)
			return err
		})
	})
}

const probeKey = "etcd-medic/probe"

func (p *proof) propose(ctx context.Context, m *plan.Member) error {
	return p.until(ctx, p.limits.step, "proposal through "+m.Name, func(ctx context.Context) error {
		return p.ask(ctx, m, func(ctx context.Context, c *clientv3.Client) error {
			resp, err := c.Txn(ctx).If(clientv3.Compare(clientv3.Version(probeKey), "<",
				0)).Then(clientv3.OpPut(probeKey, "")).Commit()
			if err == nil && resp.Succeeded {
				return never("a version below 0 was found")
			}
			return err
		})
	})
}

func (p *proof) writeAndRead(ctx context.Context, m, other *plan.Member) error {
	value := fmt.Sprintf("through %s", m.Name)
	return p.until(ctx, p.limits.step, "write through "+m.Name+", read through "+other.Name,
		func(ctx context.Context) error {
			if err := p.ask(ctx, m, func(ctx context.Context, c *clientv3.Client) error {
				_, err := c.Put(ctx, probeKey, value)
				return err
			}); err != nil {
				return err
			}
			if err := p.ask(ctx, other, func(ctx context.Context, c *clientv3.Client) error {
				resp, err := c.Get(ctx, probeKey)
				if err == nil && (len(resp.Kvs) != 1 || string(resp.Kvs[0].Value) != value) {
					return never("%s does not show what was written through %s", other.Name, m.Name)
				}
				return err
			}); err != nil {
				return err
			}
			return p.ask(ctx, m, func(ctx context.Context, c *clientv3.Client) error {
				_, err := c.Delete(ctx, probeKey)
				return err
			})
		})
}

// sameAuth compares what HashKV does not cover. Servers before 3.5 do not report their auth revision.
func (p *proof) sameAuth(ctx context.Context, members []*plan.Member) (string, error) {
	revisions := map[uint64][]string{}
	enabled := false
	err := p.until(ctx, p.limits.step, "auth status", func(ctx context.Context) error {
		clear(revisions)
		for _, m := range members {
			err := p.ask(ctx, m, func(ctx context.Context, c *clientv3.Client) error {
				resp, err := c.AuthStatus(ctx)
				if err == nil {
					enabled = enabled || resp.Enabled
					revisions[resp.AuthRevision] = append(revisions[resp.AuthRevision], m.Name)
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case err != nil && !enabled && strings.Contains(err.Error(), "unknown method"):
		return "", &openError{"these servers do not tell it"}
	case err != nil:
		return "", err
	case len(revisions) > 1:
		return "", fmt.Errorf("auth revisions differ: %v", revisions)
	}
	for rev := range revisions {
		return fmt.Sprint("auth revision ", rev), nil
	}
	return "", nil
}
