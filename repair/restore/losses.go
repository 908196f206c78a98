package restore

import (
	"fmt"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// losses lists what the new cluster does not have.
func (r *Report) losses(v *compare.Report, up *rebuild.CaughtUp) {
	if n := r.Revision.GivenUp; n > 0 {
		which := fmt.Sprintf("%d to %d", r.Backup.Revision+1, r.Backup.Revision+n+r.Revision.Raised)
		if r.Revision.Raised > 0 {
			which += fmt.Sprintf(" without the %d that an earlier restore skipped", r.Revision.Raised)
		}
		r.GivesUp = append(r.GivesUp, fmt.Sprintf("%d revisions, %s, that surviving sources hold and the backup does "+
			"not; etcd-medic rebuild --base BACKUP --log DIR can bring them back first", n, which))
	}
	if r.Revision.MarkCompacted {
		r.GivesUp = append(r.GivesUp, fmt.Sprintf("the history of keys before revision %d: it is compacted at the "+
			"first start, so that clients with older revisions read again", r.Revision.Start))
	} else {
		r.Notes = append(r.Notes, "the revision is not raised: clients that have seen newer revisions miss events or "+
			"keep stale caches")
	}
	if up.Parts.Kind == evidence.KindDataDir || up.Parts.WAL != "" {
		r.Log = up
		for _, s := range up.Says() {
			if strings.HasPrefix(s, "missing: ") {
				r.GivesUp = append(r.GivesUp, strings.TrimPrefix(s, "missing: "))
			} else {
				r.Notes = append(r.Notes, s)
			}
		}
	}
	m := &v.Members[0]
	for _, x := range m.Membership.Members {
		if x.IsLearner {
			r.GivesUp = append(r.GivesUp, fmt.Sprintf("learner %s (%s): add it again when the cluster runs", x.Name,
				x.ID))
		}
	}
	if n := len(m.Leases); n > 0 {
		r.Notes = append(r.Notes, plural.Of(n, "lease restarts", "leases restart")+" with the full time to live")
	}
	if m.Downgrade != "" {
		r.Notes = append(r.Notes, "the downgrade to "+m.Downgrade+" that was under way is cancelled")
	}
	r.Notes = append(r.Notes, "move the old data dirs aside before the first start; start all members together")
}

// minorOf returns the etcd minor version that wrote the backup, 0 if unknown.
func minorOf(m *evidence.Facts) (minor int) {
	if m.WroteBy.Etcd != nil {
		minor = release.Of(*m.WroteBy.Etcd).Minor()
	}
	return minor
}

// serversFor returns the versions that can start dirs made from a db: not older than the db, and at most one minor
// version newer, as etcd supports upgrades.
func serversFor(m *evidence.Facts) string {
	minor := minorOf(m)
	for _, v := range []string{m.ClusterVersion, deref(m.DB.StorageVersion)} {
		minor = max(minor, release.Of(v).Minor())
	}
	if minor == 0 {
		return ""
	}
	return fmt.Sprintf("3.%d, or 3.%d", minor, minor+1)
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// again says what a second restore of the same backup has in common with this one. IDs follow from token and peer URLs,
// as with etcdutl. So each host of one cluster can restore by itself with the same flags. But two clusters with the
// same flags also have the same IDs.
func (r *Report) again(o *Options) (out []string) {
	if !r.TokenGiven {
		out = append(out, fmt.Sprintf("the token %s is made from backup and revision: this backup restored with the "+
			"same flags gives the same member and cluster IDs. "+
			"That is right for the hosts of one new cluster. If a cluster restored from this backup has run before, "+
			"or a second one is to run, "+
			"set another token with --initial-cluster-token, or leftover members join the wrong one",
			o.Plan.Token))
	}
	if len(o.Surviving) == 0 {
		out = append(out, fmt.Sprintf("every restore of this backup with these flags starts at revision %d: clients "+
			"of an earlier one keep what they cached there. "+
			"If one has run, name its members with --surviving, or raise the revision above theirs with "+
			"--bump-revision", r.Revision.Start))
	}
	return out
}
