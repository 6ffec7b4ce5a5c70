package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Cat is our own reader as a judge: the command `applier cat` in a process.
// Conditions are not supported.
type Cat struct{ Binary string }

// Name is "applier".
func (c Cat) Name() string { return "applier" }

func (c Cat) run(ctx context.Context, ref Ref, q Query, each func(row []byte)) error {
	if len(q.Where) > 0 {
		return fmt.Errorf("applier cat: conditions are not supported here")
	}
	args := []string{"cat", ref.Table, "--warehouse", ref.Warehouse, "--format", "jsonl"}
	if q.Snapshot != 0 {
		args = append(args, "--snapshot", fmt.Sprint(q.Snapshot))
	}
	if q.Tag != "" {
		args = append(args, "--tag", q.Tag)
	}
	if len(q.Columns) > 0 {
		args = append(args, "--columns", strings.Join(q.Columns, ","))
	}
	cmd := exec.CommandContext(ctx, c.Binary, args...)
	cmd.SysProcAttr = childAttr(0)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("applier cat: %w", err)
	}
	if err := spawn()(cmd.Start); err != nil {
		return fmt.Errorf("applier cat: %w", err)
	}
	lines := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if row := bytes.TrimRight(line, "\n"); len(row) > 0 {
			each(row)
		}
		if err != nil {
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("applier cat %s: %w\n%s", ref.Table, err, stderr.String())
	}
	return nil
}

// Read returns the rows.
func (c Cat) Read(ctx context.Context, ref Ref, q Query) (*Rows, error) {
	r := &Rows{Snapshot: q.Snapshot}
	err := c.run(ctx, ref, q, func(row []byte) {
		if q.Limit == 0 || len(r.Rows) < q.Limit {
			r.Rows = append(r.Rows, json.RawMessage(bytes.Clone(row)))
		}
	})
	return r, err
}

// Count reads the rows and returns their number.
func (c Cat) Count(ctx context.Context, ref Ref, q Query) (int64, error) {
	d, err := c.Digest(ctx, ref, q)
	return d.Rows, err
}

// Digest reads the rows and returns their digest.
func (c Cat) Digest(ctx context.Context, ref Ref, q Query) (Digest, error) {
	var s Summer
	err := c.run(ctx, ref, q, s.Add)
	return s.Digest(), err
}

func raceWanted() bool { return os.Getenv("ITEST_RACE") == "1" }
