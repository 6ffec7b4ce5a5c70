package harness

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// The test binary stands in for the children that the tests start: HARNESS_ROLE
// says which.
func TestMain(m *testing.M) {
	switch os.Getenv("HARNESS_ROLE") {
	case "":
		os.Exit(Main(m))
	case "judge":
		fakeJudge()
	case "parent":
		fakeParent()
	}
}

// fakeJudge speaks the protocol: echo answers at once, slow when the next echo
// came, fail with an error, noise breaks the protocol, die ends.
func fakeJudge() {
	fmt.Println(`{"id":0,"ok":true}`)
	fmt.Fprintln(os.Stderr, "hello log")
	lines := bufio.NewReader(os.Stdin)
	var late []string
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		var r struct {
			ID   int64
			Cmd  string
			Text string
		}
		_ = json.Unmarshal([]byte(line), &r)
		answer := fmt.Sprintf(`{"id":%d,"ok":true,"text":%q}`, r.ID, r.Text)
		switch r.Cmd {
		case "slow":
			late = append(late, answer)
		case "echo":
			fmt.Println(answer)
			for _, a := range late {
				fmt.Println(a)
			}
			late = nil
		case "fail":
			fmt.Printf(`{"id":%d,"ok":false,"error":"SomeException","message":"Outer: x <- SomeException: conflict","stack":["a"]}`+"\n", r.ID)
		case "big":
			fmt.Printf(`{"id":%d,"ok":true,"text":"%s"}`+"\n", r.ID, strings.Repeat("x", 8<<20))
		case "noise":
			fmt.Println("not JSON")
		case "die":
			fmt.Fprintln(os.Stderr, "last words")
			os.Exit(3)
		}
	}
}

// fakeParent starts a child that would run for an hour, prints its id, and waits
// to be killed.
func fakeParent() {
	p, err := Start(Spec{Name: "child", Path: "sleep", Args: []string{"3600"}})
	if err != nil {
		panic(err)
	}
	fmt.Println("child", p.PID())
	time.Sleep(time.Hour)
}
