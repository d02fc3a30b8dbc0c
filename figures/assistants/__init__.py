"""Questions of assistants and scripts about runs: `fedscape mcp`.

`Questions` answers with values of JSON, numbers with their errors, and refuses what takes long with its cost first;
`server` offers its functions as tools of the Model Context Protocol.
"""
