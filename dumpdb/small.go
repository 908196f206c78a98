package dumpdb

import (
	"errors"
	"fmt"
)

// MaxSmall bounds the memory in bytes that the rows of a small bucket may take, as SmallSize estimates it. That is room
// for 2,500,000 leases or 400,000 users.
const MaxSmall = 512 << 20

// maxBadRows bounds the damage listed per small bucket.
const maxBadRows = 1000

// TooManyRowsError means that a small bucket has more rows than are kept in memory, so its content is unknown.
type TooManyRowsError struct {
	Bucket string
	// Rows is the number of rows that were counted before the bound.
	Rows int
}

// Error names the bucket.
func (e *TooManyRowsError) Error() string {
	return fmt.Sprintf("bucket %s has more rows than are kept in memory (%d fit)", e.Bucket, e.Rows)
}

// smallRow is the memory of any row, with what is derived of it.
const smallRow = 200

// expansion is how many bytes a byte of a value can become when it is decoded, by bucket: a string of two bytes (tag
// and length) takes 16 in a list, a permission 56.
var expansion = map[string]int64{"authUsers": 8, "authRoles": 28, "members": 8, "meta": 16}

// cost estimates the memory that a row takes.
func (r *Row) cost(bucket string) int64 {
	return smallRow + int64(len(r.Key)) + max(expansion[bucket], 1)*int64(len(r.Value))
}

// SmallSize estimates the memory that the rows of all small buckets take: those of etcd apart from key. It stops with a
// *TooManyRowsError as soon as they take more than bound.
func (db *DB) SmallSize(bound int64) (size int64, err error) {
	for _, name := range etcdBuckets {
		if name == "key" {
			continue
		}
		n := 0
		for row, err := range db.Rows(name) {
			if err != nil {
				continue // a reader of the bucket returns it
			}
			if size += row.cost(name); size > bound {
				return size, &TooManyRowsError{Bucket: name, Rows: n}
			}
			n++
		}
	}
	return size, nil
}

// eachRow calls fn for every row of a small bucket. It returns damage and undecodable rows as [Damages], and a
// *TooManyRowsError if the rows take more memory than MaxSmall.
func (db *DB) eachRow(bucket string, fn func(Row) error) error {
	var bad Damages
	more, rows, size := 0, 0, int64(0)
	for row, err := range db.Rows(bucket) {
		var d *DamageError
		if err == nil {
			if size += row.cost(bucket); size > MaxSmall {
				return &TooManyRowsError{Bucket: bucket, Rows: rows}
			}
			rows++
			if err = fn(row); err == nil {
				continue
			}
			d = badRow(bucket, row, err)
		} else if !errors.As(err, &d) {
			return err
		}
		if len(bad) < maxBadRows {
			bad = append(bad, d)
		} else {
			more++
		}
	}
	if more > 0 {
		return fmt.Errorf("%w (and %d more)", bad, more)
	}
	return damagesOrNil(bad)
}
