package app

import (
	"fmt"

	"applier/storage/objstore"
)

// suitable refuses a warehouse on a network file system unless the configuration
// allows it: whether exclusive creation and fsync hold there is up to a server.
func suitable(b objstore.Bucket, network bool) error {
	local, ok := b.(*objstore.Local)
	if !ok || network {
		return nil
	}
	name, remote, err := local.FileSystem()
	if err != nil {
		return err
	}
	if remote {
		return fmt.Errorf("the warehouse lies on a network file system (%s), where exclusive creation and durability depend on the server; if you are sure of both, write\n  warehouse: { path: …, network: true }", name)
	}
	return nil
}
