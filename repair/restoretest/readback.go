package restoretest

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/etcd-medic/etcd-medic/compare/backup"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// The restored member. Its URLs are unreachable: addresses of this range are for documentation.
const (
	memberName = "drill"
	token      = "etcd-medic-drill"
	peerURL    = "http://192.0.2.1:2380"
	clientURL  = "http://192.0.2.1:2379"

	entryConfChange = dumplog.EntryConfChange
)

// defaultMaxMarks bounds memory to about 140 MB.
const defaultMaxMarks = 2_000_000

// readBack reads every key at the backup's revision, the hash over its whole history, and the rest of its content.
func (d *drill) readBack(ctx context.Context) error {
	cli, err := d.mem.Client()
	if err != nil {
		return err
	}
	d.res.Revision = d.m.CurrentRevision()
	if len(d.m.DB.Alarms) > 0 {
		if err := d.step("disarm the alarms of the backup",
			func() (string, error) { return d.disarm(ctx, cli) }); err != nil {
			return err
		}
	}
	if err := d.step("read every key back", func() (string, error) { return d.keys(ctx, cli) }); err != nil {
		return err
	}
	d.res.Equal = release.AnswerOf(len(d.res.Differences) == 0)
	if err := d.step("compare HashKV", func() (string, error) { return d.hash(ctx, cli) }); err != nil {
		return err
	}
	if err := d.step("compare leases, users, roles", func() (string, error) { return d.small(ctx, cli) }); err != nil {
		return err
	}
	d.res.Equal = release.AnswerOf(len(d.res.Differences) == 0)
	return nil
}

// keys reads all keys in parts, to bound memory; each part in ranges of about equal size, on all cores.
func (d *drill) keys(ctx context.Context, cli *clientv3.Client) (string, error) {
	bound := d.o.MaxMarks
	if bound == 0 {
		bound = defaultMaxMarks
	}
	parts := uint64(d.m.DB.KV.LiveKeys/bound) + 1
	var total int64
	for part := range parts {
		t, err := readMarks(ctx, d.m.DB.Handle, part, parts)
		if err != nil {
			return "", err
		}
		n, err := d.part(ctx, cli, t)
		if err != nil {
			return "", err
		}
		total += n
	}
	d.res.Keys = total
	return fmt.Sprintf("%d keys at revision %d, %d differ", total, d.res.Revision, len(d.res.Differences)+d.res.More),
		nil
}

// part reads the whole key space and compares the keys of one part with their marks.
func (d *drill) part(ctx context.Context, cli *clientv3.Client, t *marks) (int64, error) {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	bounds := t.bounds
	found := make([][]backup.Difference, len(bounds))
	counts := make([]int64, len(bounds))
	for i := range bounds {
		g.Go(func() error {
			opts := []clientv3.OpOption{clientv3.WithRev(d.res.Revision), clientv3.WithSerializable(),
				clientv3.WithFromKey()}
			if i+1 < len(bounds) {
				opts[2] = clientv3.WithRange(bounds[i+1])
			}
			resp, err := cli.Get(gctx, bounds[i], opts...)
			if err != nil {
				return err
			}
			for _, kv := range resp.Kvs {
				own, diff := t.compare(kv)
				if own {
					counts[i]++
				}
				if diff != nil {
					found[i] = append(found[i], *diff)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	var n int64
	for i := range bounds {
		n += counts[i]
		for _, x := range found[i] {
			d.differ(x)
		}
	}
	return n, t.missing(ctx, d.m.DB.Handle, d.differ)
}

// hash compares the server's hash over all its records with that of the file.
func (d *drill) hash(ctx context.Context, cli *clientv3.Client) (string, error) {
	want, err := d.m.DB.Handle.HashKV(ctx, d.res.Revision)
	if err != nil {
		return "", err
	}
	have, err := cli.HashKV(ctx, cli.Endpoints()[0], d.res.Revision)
	if err != nil {
		return "", err
	}
	if have.CompactRevision != want.CompactRev {
		return fmt.Sprintf("not comparable: compacted at %d, the backup at %d", have.CompactRevision, want.CompactRev),
			nil
	}
	if have.Hash != want.Hash {
		d.differ(backup.Difference{What: "HashKV", InBackup: fmt.Sprint(want.Hash), Answered: fmt.Sprint(have.Hash)})
	}
	return fmt.Sprintf("%d at revision %d", have.Hash, want.Rev), nil
}

// small compares everything outside the key space. Leases continue to run, so a short one may have expired.
func (d *drill) small(ctx context.Context, cli *clientv3.Client) (string, error) {
	leases, err := cli.Leases(ctx)
	if err != nil {
		return "", err
	}
	have := map[dumpdb.ID]bool{}
	for _, l := range leases.Leases {
		have[dumpdb.ID(l.ID)] = true
	}
	for _, l := range d.m.DB.Leases {
		left := l.TTL
		if l.RemainingTTL > 0 {
			left = l.RemainingTTL
		}
		if !have[l.ID] && left > int64(d.o.Timeout.Seconds()) {
			d.differ(backup.Difference{What: "lease " + l.ID.String(), InBackup: fmt.Sprintf("TTL %d s", l.TTL),
				Answered: "no such lease"})
		}
		delete(have, l.ID)
	}
	for id := range have {
		d.differ(backup.Difference{What: "lease " + id.String(), InBackup: "none", Answered: "a lease"})
	}
	if err := d.auth(ctx, cli); err != nil {
		return "", err
	}
	a := &d.m.DB.Auth
	return fmt.Sprintf("%d leases, %d users, %d roles", len(leases.Leases), len(a.Users), len(a.Roles)), nil
}

// disarm clears the alarms in the backup, once the server has shown that it has them. With NOSPACE it would refuse
// writes, with CORRUPT all requests. A restored cluster needs the same.
func (d *drill) disarm(ctx context.Context, cli *clientv3.Client) (string, error) {
	list, err := cli.AlarmList(ctx)
	if err != nil {
		return "", err
	}
	if len(list.Alarms) != len(d.m.DB.Alarms) {
		d.differ(backup.Difference{What: "alarms", InBackup: fmt.Sprint(len(d.m.DB.Alarms)),
			Answered: fmt.Sprint(len(list.Alarms))})
	}
	var names []string
	for _, a := range list.Alarms {
		names = append(names, a.Alarm.String())
		if _, err := cli.AlarmDisarm(ctx, (*clientv3.AlarmMember)(a)); err != nil {
			return "", err
		}
	}
	return strings.Join(names, ", ") + ": a restored cluster answers and writes only once they are disarmed", nil
}

func (d *drill) auth(ctx context.Context, cli *clientv3.Client) error {
	a := &d.m.DB.Auth
	users, err := cli.UserList(ctx)
	if err != nil {
		return err
	}
	roles, err := cli.RoleList(ctx)
	if err != nil {
		return err
	}
	wantUsers, wantRoles := map[string]string{}, map[string]string{}
	for _, u := range a.Users {
		wantUsers[u.Name] = strings.Join(u.Roles, " ")
	}
	for _, r := range a.Roles {
		wantRoles[r.Name] = permissions(r.Name, r.Perms)
	}
	haveUsers, haveRoles := map[string]string{}, map[string]string{}
	for _, u := range users.Users {
		g, err := cli.UserGet(ctx, u)
		if err != nil {
			return err
		}
		haveUsers[u] = strings.Join(g.Roles, " ")
	}
	for _, r := range roles.Roles {
		g, err := cli.RoleGet(ctx, r)
		if err != nil {
			return err
		}
		var perms []dumpdb.Permission
		for _, x := range g.Perm {
			perms = append(perms, dumpdb.Permission{Type: int32(x.PermType), Key: x.Key, RangeEnd: x.RangeEnd})
		}
		haveRoles[r] = permissions(r, perms)
	}
	d.sameMap("user", wantUsers, haveUsers)
	d.sameMap("role", wantRoles, haveRoles)
	return nil
}

// permissions describes the permissions of a role. Role root has all permissions, whatever is stored, and servers
// answer accordingly.
func permissions(role string, perms []dumpdb.Permission) string {
	if role == "root" {
		return "everything"
	}
	var s []string
	for i := range perms {
		s = append(s, perms[i].String())
	}
	slices.Sort(s)
	return fmt.Sprintf("[%s]", strings.Join(s, ", "))
}

func (d *drill) sameMap(what string, want, have map[string]string) {
	names := slices.Sorted(maps.Keys(want))
	for n := range have {
		if _, ok := want[n]; !ok {
			names = append(names, n)
		}
	}
	for _, n := range names {
		w, inBackup := want[n]
		h, answered := have[n]
		if !inBackup {
			w = "none"
		}
		if !answered {
			h = "none"
		}
		if w != h {
			d.differ(backup.Difference{What: what + " " + n, InBackup: w, Answered: h})
		}
	}
}

// write proves that the restored cluster accepts and returns a write, then removes it again.
func (d *drill) write(ctx context.Context) (string, error) {
	cli, err := d.mem.Client()
	if err != nil {
		return "", err
	}
	const key, value = "etcd-medic/drill", "written by a drill"
	put, err := cli.Put(ctx, key, value)
	if err != nil {
		return "", err
	}
	if put.Header.GetRevision() <= d.res.Revision {
		return "", contradiction("the write got revision %d, which the backup has already", put.Header.GetRevision())
	}
	got, err := cli.Get(ctx, key)
	if err != nil {
		return "", err
	}
	if len(got.Kvs) != 1 || string(got.Kvs[0].Value) != value {
		return "", contradiction("what was written at revision %d is not read back", put.Header.GetRevision())
	}
	if _, err := cli.Delete(ctx, key); err != nil {
		return "", err
	}
	return fmt.Sprintf("at revision %d", put.Header.GetRevision()), nil
}
