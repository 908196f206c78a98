//go:build !linux

package node_test

func becoming() (handled bool, code int) { return false, 0 }
