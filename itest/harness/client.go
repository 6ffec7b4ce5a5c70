package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"
)

// Args are the named arguments of a command.
type Args map[string]any

// RemoteError is an error that a judge answered with; the judge goes on working.
type RemoteError struct {
	Judge   string
	Cmd     string
	Class   string   // the innermost exception's class
	Message string   // the whole chain, outermost first
	Stack   []string // first lines of the innermost
}

func (e *RemoteError) Error() string {
	return fmt.Sprintf("%s %s: %s", e.Judge, e.Cmd, e.Message)
}

// client speaks the line protocol with one judge. It is safe for concurrent
// use; a judge may answer out of order.
type client struct {
	name string
	proc *Process

	writing sync.Mutex // never held while mu is: a full pipe must not keep answers from being read

	mu      sync.Mutex // guards what follows
	next    int64
	waiting map[int64]chan answer
	dead    error
}

type answer struct {
	line []byte
	err  error
}

// head is what every answer carries.
type head struct {
	ID      *int64   `json:"id"`
	OK      bool     `json:"ok"`
	Error   string   `json:"error"`
	Message string   `json:"message"`
	Stack   []string `json:"stack"`
}

// dial starts a judge and waits for its greeting.
func dial(ctx context.Context, s Spec) (*client, error) {
	s.Protocol = true
	p, err := Start(s)
	if err != nil {
		return nil, err
	}
	c := &client{name: s.Name, proc: p, next: 1, waiting: map[int64]chan answer{}}
	hello := make(chan answer, 1)
	c.waiting[0] = hello
	go c.receive()
	select {
	case a := <-hello:
		if a.err == nil {
			return c, nil
		}
		err = a.err
	case <-ctx.Done():
		err = fmt.Errorf("waiting for its greeting: %w\n%s", ctx.Err(), p.Output.Tail(30))
	}
	p.stdin.Close()
	p.Kill()
	return nil, fmt.Errorf("starting %s: %w", s.Name, err)
}

// receive hands each answer to whom it belongs until the judge ends.
func (c *client) receive() {
	r := bufio.NewReaderSize(c.proc.stdout, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			break
		}
		var h head
		if err := json.Unmarshal(line, &h); err != nil || h.ID == nil {
			c.fail(fmt.Errorf("%s broke the protocol: %.200q", c.name, line))
			continue
		}
		c.mu.Lock()
		ch := c.waiting[*h.ID]
		delete(c.waiting, *h.ID)
		c.mu.Unlock()
		if ch != nil { // nil: the caller gave up waiting
			ch <- answer{line: line}
		}
	}
	_, _ = io.Copy(io.Discard, r)
	c.proc.reap()
	c.fail(fmt.Errorf("%s ended: %v\n%s", c.name, c.proc.err, c.proc.Output.Tail(30)))
}

// fail tells everyone who waits, and who comes later.
func (c *client) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead == nil {
		c.dead = err
	}
	for id, ch := range c.waiting {
		ch <- answer{err: c.dead}
		delete(c.waiting, id)
	}
}

func (c *client) alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead == nil
}

// Call runs a command and decodes its answer into out (nil: ignored). An error
// of the judge is a *RemoteError.
func (c *client) Call(ctx context.Context, cmd string, args Args, out any) error {
	ch, err := c.send(cmd, args)
	if err != nil {
		return err
	}
	var a answer
	select {
	case a = <-ch:
	case <-ctx.Done():
		return fmt.Errorf("%s %s: %w", c.name, cmd, ctx.Err())
	}
	if a.err != nil {
		return fmt.Errorf("%s %s: %w", c.name, cmd, a.err)
	}
	var h head
	if err := json.Unmarshal(a.line, &h); err != nil {
		return fmt.Errorf("%s %s: reading the answer: %w", c.name, cmd, err)
	}
	if !h.OK {
		return &RemoteError{Judge: c.name, Cmd: cmd, Class: h.Error, Message: h.Message, Stack: h.Stack}
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(a.line, out); err != nil {
		return fmt.Errorf("%s %s: reading the answer: %w", c.name, cmd, err)
	}
	return nil
}

func (c *client) send(cmd string, args Args) (<-chan answer, error) {
	request := maps.Clone(args)
	if request == nil {
		request = Args{}
	}
	ch := make(chan answer, 1)
	c.mu.Lock()
	if c.dead != nil {
		defer c.mu.Unlock()
		return nil, c.dead
	}
	id := c.next
	c.next++
	c.waiting[id] = ch
	c.mu.Unlock()

	request["id"], request["cmd"] = id, cmd
	line, err := json.Marshal(request)
	if err == nil {
		c.writing.Lock()
		_, err = c.proc.stdin.Write(append(line, '\n'))
		c.writing.Unlock()
	}
	if err != nil {
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
		return nil, fmt.Errorf("%s %s: writing the request: %w", c.name, cmd, err)
	}
	return ch, nil
}

// End ends the judge before the tests' end, for its memory; who asks for it later
// gets a new one.
func (c *client) End() {
	c.fail(fmt.Errorf("%s was ended", c.name))
	c.close()
}

// close ends the judge: the end of its input, then force.
func (c *client) close() {
	c.proc.stdin.Close()
	select {
	case <-c.proc.done:
	case <-time.After(pipeGrace):
		c.proc.Kill()
	}
}
