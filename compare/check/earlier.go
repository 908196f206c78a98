package check

import (
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// earlierStates keeps the databases as they were before their last transaction, and their rows.
type earlierStates struct {
	before     map[*evidence.Member]*evidence.Member
	beforeRows map[beforeKey]map[string]string
}

type beforeKey struct {
	m      *evidence.Member
	bucket string
	kind   diff.RowKind
}

// stateBefore returns the member before its last transaction, nil if that state proves nothing; see
// evidence.Member.Before.
func (es *earlierStates) stateBefore(m *evidence.Member) *evidence.Member {
	b, ok := es.before[m]
	if !ok {
		if es.before == nil {
			es.before, es.beforeRows = map[*evidence.Member]*evidence.Member{}, map[beforeKey]map[string]string{}
		}
		b = m.Before()
		es.before[m] = b
	}
	return b
}

// rowsBefore are the rows of a small bucket before the member's last transaction.
func (es *earlierStates) rowsBefore(m *evidence.Member, bucket string, kind diff.RowKind) map[string]string {
	k := beforeKey{m, bucket, kind}
	rows, ok := es.beforeRows[k]
	if !ok {
		rows = diff.RowsOf(es.stateBefore(m), bucket, kind)
		es.beforeRows[k] = rows
	}
	return rows
}
