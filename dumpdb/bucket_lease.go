package dumpdb

import "fmt"

// leaseWires: ID, TTL, RemainingTTL are varints (server/lease/leasepb/lease.proto; RemainingTTL since 3.4).
var leaseWires = []int8{skipField, 0, 0, 0}

// Leases reads bucket lease.
func (db *DB) Leases() ([]Lease, error) {
	var out []Lease
	err := db.eachRow("lease", func(row Row) error {
		l, err := decodeLease(row)
		if err == nil {
			out = append(out, l)
		}
		return err
	})
	return out, err
}

func decodeLease(row Row) (Lease, error) {
	l := Lease{Place: row.Place}
	id, err := bigEndian(row.Key)
	if err != nil {
		return l, fmt.Errorf("lease ID: %w", err)
	}
	err = eachField(row.Value, leaseWires, func(f *field) error {
		switch f.Num {
		case 1:
			l.ID = ID(f.V)
		case 2:
			l.TTL = int64(f.V)
		case 3:
			l.RemainingTTL = int64(f.V)
		}
		return nil
	})
	if err == nil && uint64(l.ID) != id {
		err = fmt.Errorf("the row of lease %s contains lease %s", ID(id), l.ID)
	}
	return l, err
}
