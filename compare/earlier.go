package compare

import (
	"context"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// setEarlierApart sets backups apart that were taken before the cluster was restored: their indexes and members are
// those of the cluster before, so they are not compared. Neither are backups that may have been.
func (c *collected) setEarlierApart(ctx context.Context) error {
	all := c.set.Members
	if clusters(all) != 1 {
		return nil
	}
	var rest []*evidence.Member
	var earlier []check.Earlier
	for _, m := range all {
		if !evidence.OfAnotherCluster(all, m) {
			rest = append(rest, m)
			continue
		}
		e, foreign, err := earlierThan(ctx, m, all)
		if err != nil {
			return err
		}
		if foreign > 0 {
			return nil
		}
		earlier = append(earlier, e)
	}
	c.setApart(rest, earlier)
	return nil
}

// setApart continues with the rest of the members. It reports whether there are any others.
func (c *collected) setApart(rest []*evidence.Member, earlier []check.Earlier) bool {
	if len(earlier) == 0 {
		return false
	}
	c.in.Members, c.in.Earlier = rest, append(c.in.Earlier, earlier...)
	c.single = len(rest) == 1 && len(c.set.Failed) == 0
	c.in.Single = c.single
	return true
}

// setUnwrittenApart sets backups apart from before the cluster was restored with the IDs that it had: none of the log's
// entries wrote to them. If all data dirs hold another history, they are of another cluster.
func (c *collected) setUnwrittenApart(ctx context.Context) (apart bool, err error) {
	members := c.in.Members
	var rest []*evidence.Member
	var earlier []check.Earlier
	for i, m := range members {
		if other := c.in.Replay.Unwritten(i); other != nil {
			e, foreign, err := earlierThan(ctx, m, members)
			if err != nil {
				return false, err
			}
			if foreign < dataDirs(members) {
				e.OtherLog = other
				earlier = append(earlier, e)
				continue
			}
		}
		rest = append(rest, m)
	}
	return c.setApart(rest, earlier), nil
}

// earlierThan compares a backup with the data dirs until one continues its history. Foreign counts those that hold
// another history; all do if one shows that the cluster was not restored.
func earlierThan(ctx context.Context, backup *evidence.Member, members []*evidence.Member) (e check.Earlier,
	foreign int, err error) {
	e.Backup, e.Damaged = backup, !intact(backup.DB)
	for _, m := range members {
		if !m.HasWAL() {
			continue
		}
		if m.WAL.Summary.Start == dumplog.StartBootstrap {
			return e, len(members), nil // the cluster was not restored
		}
		n, differs, err := diff.Continues(ctx, backup, m)
		if err != nil {
			return e, 0, err
		}
		if n > 0 {
			e.Member, e.Records = m, n
			return e, 0, nil
		}
		if differs {
			foreign++
		}
	}
	return e, foreign, nil
}

func dataDirs(members []*evidence.Member) (n int) {
	for _, m := range members {
		if m.HasWAL() {
			n++
		}
	}
	return n
}

// withEarlier adds what a check finds wrong with the file of a backup that was set apart: that needs no other source.
func (c *collected) withEarlier(ck *check.Check, res check.Result) check.Result {
	for _, e := range c.in.Earlier {
		alone := &check.Input{Ctx: c.in.Ctx, Members: check.Sources{e.Backup}, MaxRows: c.o.MaxRows, Single: true}
		if _, ok := ck.Applies(alone); !ok {
			continue
		}
		for _, f := range ck.Run(alone).Findings {
			ofFile := f.Class == check.ClassDBDamage || f.Class == check.ClassBackupDamaged
			if ofFile && f.Severity.Rank() >= check.Error.Rank() {
				res.Findings, res.Outcome, res.Reason = append(res.Findings, f), check.Violated, ""
			}
		}
	}
	return res
}

// intact reports whether nothing shows that a backup's file was altered or damaged.
func intact(db *evidence.DB) bool {
	return len(db.Damage)+len(db.KV.Violations) == 0 && db.Trailer.State != "mismatch"
}
