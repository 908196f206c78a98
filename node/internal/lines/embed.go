//go:build lines

package lines

import "embed"

//go:embed etcd-*.zst
var files embed.FS
