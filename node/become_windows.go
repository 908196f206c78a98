package node

import "errors"

// become fails: Windows cannot replace a process, and a server that is a child of this one would outlive it.
func become(string, []string) error {
	return errors.New("on Windows only the server of etcd 3.6 is brought along; name another with --etcd-binary")
}
