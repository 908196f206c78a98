package backup

import (
	"context"
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/backup/chain"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// judgeChain verifies the delta snapshots of a full one and turns their faults into findings of B10.
func judgeChain(ctx context.Context, r *compare.Report, m *evidence.Member, c *chain.Chain) error {
	if c == nil {
		return nil
	}
	if !m.HasDB() || m.DB.KV == nil || m.DB.KVDamaged {
		LeaveOpen(r, check.B10, "the full snapshot cannot be read in full")
		return nil
	}
	got, err := c.Verify(ctx, m.DB.Handle)
	if err != nil {
		return err
	}
	r.Backup.Chain = got
	var fs []check.Finding
	unreadable := ""
	for _, f := range got.Faults {
		if f.Kind == chain.Unreadable {
			unreadable = f.Text
			continue
		}
		fs = append(fs, chainFinding(m, got, f))
	}
	switch {
	case len(fs) > 0:
		Judge(r, check.B10, check.Violated, "", fs...)
	case unreadable != "":
		LeaveOpen(r, check.B10, unreadable)
	default:
		Judge(r, check.B10, check.Holds, "")
	}
	return nil
}

func chainFinding(m *evidence.Member, c *chain.Report, f chain.Fault) check.Finding {
	out := check.Finding{Kind: check.KindDeltaBroken, Severity: check.Error, Class: check.ClassBackupDamaged,
		Members: []string{m.Label()},
		Title: m.Label() +
			": " + f.Text,
		Explanation: fmt.Sprintf("the chain serves up to revision %d; the name of its last file promises %d",
			c.Revision, c.LastNamed),
		Evidence: []check.Evidence{{Member: m.Label(), File: f.File, Key: f.Key, Field: string(f.Kind),
			Observed: f.Text, Expected: "every revision once, in order, each fitting those before it"}}}
	if f.First > 0 {
		out.At.Revision = &check.Rev{Main: f.First}
	}
	return out
}

// sayChain describes the layer of the deltas.
func sayChain(r *compare.Report, _ *evidence.Facts) string {
	c, ok := r.Backup.Chain.(*chain.Report)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d delta snapshots, %d events, up to revision %d", len(c.Deltas), c.Events, c.Revision)
}
