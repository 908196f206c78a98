//go:build !lite

package objects

import (
	"context"
	"errors"
	"io"
	"time"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // azblob://
	_ "gocloud.dev/blob/gcsblob"   // gs://
	_ "gocloud.dev/blob/s3blob"    // s3://
	"gocloud.dev/gcerrors"
)

// cloud is a bucket of gocloud.dev.
type cloud struct{ b *blob.Bucket }

func openBucket(ctx context.Context, address string) (bucket, error) {
	b, err := blob.OpenBucket(ctx, address)
	if err != nil {
		return nil, err
	}
	return cloud{b}, nil
}

func (c cloud) close() error { return c.b.Close() }

func (c cloud) list(ctx context.Context, prefix string, each func(string, int64, time.Time) error) error {
	it := c.b.List(&blob.ListOptions{Prefix: prefix})
	for {
		o, err := it.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := each(o.Key, o.Size, o.ModTime); err != nil {
			return err
		}
	}
}

func (c cloud) stat(ctx context.Context, key string) (size int64, modified time.Time, found bool, err error) {
	a, err := c.b.Attributes(ctx, key)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return 0, time.Time{}, false, nil
	}
	if err != nil {
		return 0, time.Time{}, false, err
	}
	return a.Size, a.ModTime, true, nil
}

func (c cloud) read(ctx context.Context, key string, length int64) (io.ReadCloser, error) {
	return c.b.NewRangeReader(ctx, key, 0, length, nil)
}
