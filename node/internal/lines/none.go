//go:build !lines

package lines

import "embed"

// files is empty: this build contains no other servers.
var files embed.FS
