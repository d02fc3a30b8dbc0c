"""Training of one client and the server's memory: data, optimiser, corrections, initial values.

`client.Client` trains; methods change what it does by the contract in `config.method`.
"""
